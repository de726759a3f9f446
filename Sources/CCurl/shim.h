// libcurl for Swift, which cannot call functions with variable arguments: one typed function for
// each kind of argument they are called with here.
#ifndef CACHE_ENGINE_CCURL_H
#define CACHE_ENGINE_CCURL_H

#include <curl/curl.h>

static inline CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode ccurl_set_list(CURL *easy, struct curl_slist *list) {
    return curl_easy_setopt(easy, CURLOPT_HTTPHEADER, list);
}

/// The form of the header, body and upload callbacks.
typedef size_t (*ccurl_data_callback)(char *bytes, size_t size, size_t count, void *context);
typedef int (*ccurl_seek_callback)(void *context, curl_off_t offset, int origin);
typedef int (*ccurl_request_callback)(void *context, char *local_address, char *remote_address,
                                      int local_port, int remote_port);

static inline CURLcode ccurl_set_data_callback(CURL *easy, CURLoption option,
                                               ccurl_data_callback callback) {
    return curl_easy_setopt(easy, option, callback);
}

static inline CURLcode ccurl_set_seek_callback(CURL *easy, ccurl_seek_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, callback);
}

/// Called before a request is sent on a connection; CURL_PREREQFUNC_ABORT keeps it from being sent.
static inline CURLcode ccurl_set_request_callback(CURL *easy, ccurl_request_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback);
}

static inline CURLcode ccurl_allow_http_only(CURL *easy) {
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

/// Lets a transfer end while its host name is being looked up, instead of waiting for the answer.
static inline void ccurl_end_without_resolver(CURL *easy) {
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#else
    (void)easy;
#endif
}

static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode ccurl_multi_set_socket_callback(CURLM *multi, curl_socket_callback callback,
                                                        void *context) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, callback);
    return code ? code : curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
}

static inline CURLMcode ccurl_multi_set_timer_callback(CURLM *multi,
                                                       curl_multi_timer_callback callback,
                                                       void *context) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, callback);
    return code ? code : curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
}

/// The transfer and result of a message that says a transfer is done; NULL for any other message.
static inline CURL *ccurl_message_transfer(const CURLMsg *message) {
    return message->msg == CURLMSG_DONE ? message->easy_handle : NULL;
}

static inline CURLcode ccurl_message_result(const CURLMsg *message) { return message->data.result; }

/// The pointer that CURLOPT_PRIVATE left with a transfer.
static inline void *ccurl_private(CURL *easy) {
    char *value = NULL;
    return curl_easy_getinfo(easy, CURLINFO_PRIVATE, &value) == CURLE_OK ? value : NULL;
}

/// The errno of the last system call that failed for the transfer, or 0.
static inline long ccurl_system_error(CURL *easy) {
    long value = 0;
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &value);
    return value;
}

#endif
