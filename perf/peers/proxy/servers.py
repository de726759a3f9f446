"""The origin and the compared servers: their configuration, start and end."""
import os, pwd, resource, shutil, signal, socket, subprocess, sys, tempfile
import processors
from traffic import answers

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../../.."))
running = []


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(command, processor, log, **options):
    """Starts a server in a group of its own, which `stop` ends; an interrupt of the terminal ends this
    script alone. It stays in this session: the scheduler gives each session an equal share, and `nice`
    counts only within one."""
    process = subprocess.Popen(["taskset", "-c", processor, *command], stdout=log, stderr=log,
                               stdin=subprocess.DEVNULL, preexec_fn=os.setpgrp, **options)
    running.append(process)
    return process


def stop(processes):
    """Ends the processes and those that they started."""
    for process in reversed(processes):
        try:
            os.killpg(process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
    for process in list(processes):
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        running.remove(process)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def raise_file_limit():
    """Lets this process, and all servers that it starts, open as many files as the system allows."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    if kept_files() < 10_000:
        print(f"nginx keeps {kept_files()} files open and not all objects; raise ulimit -n", file=sys.stderr)


def kept_files():
    """The files that nginx keeps open. They count against its limit: without a rest, responses fail."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 20_000 if limit == resource.RLIM_INFINITY else max(100, min(20_000, limit - 4_096))


def nginx_frame(folder, content):
    return f"""
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; user root;
worker_rlimit_nofile 65536;
events {{ worker_connections 8192; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 1h; open_file_cache max={kept_files()};
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  {content}
}}"""


# The bodies of the origin by the first part of the path.
FILES = {"1k": 1 << 10, "4k": 4 << 10, "32k": 32 << 10, "1m": 1 << 20, "8m": 8 << 20, "pass": 1 << 10}


def origin(folder, port, log):
    """nginx with a file for every path under a prefix. Bodies up to 32 KiB are sent with the head
    in one call, larger ones by sendfile."""
    os.makedirs(f"{folder}/files")
    locations = ""
    for name, size in FILES.items():
        with open(f"{folder}/files/{name}", "wb") as file:
            file.write(os.urandom(size // 2) + bytes(size // 2))
        policy = "no-store" if name == "pass" else "max-age=86400"
        how = "sendfile on; tcp_nopush on;" if size > 32 << 10 else "sendfile off; output_buffers 1 64k;"
        locations += f"""
    location /{name}/ {{ try_files /{name} =404; add_header Cache-Control {policy}; {how} }}"""
    write(f"{folder}/nginx.conf", nginx_frame(folder, f"""
  server {{ listen 127.0.0.1:{port} backlog=4096; root {folder}/files;
    location = /requests {{ stub_status; }}{locations}
  }}"""))
    return start(["nginx", "-p", folder, "-c", f"{folder}/nginx.conf"], processors.of_load, log)


def nginx(folder, port, origin_port, setting, log):
    write(f"{folder}/nginx.conf", nginx_frame(folder, f"""
  sendfile on; tcp_nopush on;
  proxy_cache_path {folder}/cache levels=1:2 use_temp_path=off keys_zone=k:64m max_size=2g inactive=1h;
  upstream origin {{ server 127.0.0.1:{origin_port}; keepalive 128; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_cache k; proxy_pass http://origin;
    proxy_http_version 1.1; proxy_set_header Connection ""; }} }}"""))
    return start(["nginx", "-p", folder, "-c", f"{folder}/nginx.conf"], processors.of_servers, log)


def varnish(folder, port, origin_port, setting, log):
    return start(["varnishd", "-F", "-j", "none", "-n", f"{folder}/work", "-a", f"127.0.0.1:{port}",
                  "-b", f"127.0.0.1:{origin_port}", "-s", f"malloc,{setting.memory}",
                  "-p", "timeout_idle=60"], processors.of_servers, log)


def squid(folder, port, origin_port, setting, log):
    user = "proxy"
    disk = f"cache_dir aufs {folder}/disk 2048 16 256" if setting.is_on_disk else ""
    write(f"{folder}/squid.conf", f"""
http_port 127.0.0.1:{port} accel defaultsite=127.0.0.1 no-vhost
cache_peer 127.0.0.1 parent {origin_port} 0 no-query no-digest originserver
cache_mem {setting.memory >> 20} MB
maximum_object_size_in_memory 4 MB
{disk}
access_log none
cache_log {folder}/cache.log
cache_store_log none
pid_filename {folder}/pid
coredump_dir {folder}
http_access allow all
cache_effective_user {user}
workers 1
icp_port 0
pinger_enable off
shutdown_lifetime 1 seconds
""")
    identity = pwd.getpwnam(user)
    os.chown(folder, identity.pw_uid, identity.pw_gid)
    if disk:
        subprocess.run(["squid", "-N", "-z", "-f", f"{folder}/squid.conf"], stdout=log, stderr=log)
    return start(["squid", "-N", "-f", f"{folder}/squid.conf"], processors.of_servers, log)


def trafficserver(folder, port, origin_port, setting, log):
    base, config = f"{folder}/root", f"{folder}/root/etc"
    shutil.copytree("/etc/trafficserver", config)
    for name in ("var", "log", "run", "cache"):
        os.makedirs(f"{base}/{name}")
    run_root = f"{base}/runroot.yaml"
    write(run_root, f"""prefix: {base}
exec_prefix: {base}
bindir: /usr/bin
sbindir: /usr/sbin
sysconfdir: {config}
datadir: {base}/cache
includedir: /usr/include
libdir: /usr/lib/trafficserver
libexecdir: /usr/lib/trafficserver/modules
localstatedir: {base}/var
runtimedir: {base}/run
logdir: {base}/log
cachedir: {base}/cache
""")
    write(f"{config}/records.config", f"""
CONFIG proxy.config.http.server_ports STRING {port}:ip-in=127.0.0.1
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT 1
CONFIG proxy.config.exec_thread.affinity INT 0
CONFIG proxy.config.url_remap.remap_required INT 1
CONFIG proxy.config.http.cache.http INT 1
CONFIG proxy.config.cache.ram_cache.size INT {setting.memory}
CONFIG proxy.config.log.logging_enabled INT 0
CONFIG proxy.config.admin.user_id STRING trafficserver
CONFIG proxy.config.diags.output.diag STRING E
""")
    write(f"{config}/remap.config", f"map / http://127.0.0.1:{origin_port}/\n")
    cache = f"{folder}/cache"
    os.makedirs(cache)
    size = setting.memory if setting.is_full else 1 << 30
    write(f"{config}/storage.config", f"{cache} {size >> 20}M\n")
    write(f"{config}/plugin.config", "")
    subprocess.run(["chown", "-R", "trafficserver", folder], check=True)
    return start(["traffic_server", f"--run-root={run_root}"], processors.of_servers, log,
                 env=dict(os.environ, TS_RUNROOT=run_root))


def cache_proxy(binary):
    def launch(folder, port, origin_port, setting, log):
        disk = ["--disk", f"{folder}/disk", "--disk-size", "2G"] if setting.is_on_disk else []
        return start([binary, "--listen", f"127.0.0.1:{port}", "--origin", f"http://127.0.0.1:{origin_port}",
                      "--memory", f"{setting.memory >> 20}M", "--name", "cache-proxy", *disk],
                     processors.of_servers, log)
    return launch


def bare(tools, size, status, log):
    """Starts a bare responder for bodies of `size`; returns its port."""
    port = free_port()
    start([f"{tools}/bare", str(port), str(size), *(["304"] if status == 304 else [])], processors.of_servers, log)
    return port if answers(port, "/", status) else None


# The programs of every run and their packages; nginx is the origin, too.
TOOLS = {"nginx": "nginx-light", "wrk": "wrk", "cc": "gcc", "taskset": "util-linux"}
# Those of single servers.
PROGRAMS = {"varnish": {"varnishd": "varnish"}, "squid": {"squid": "squid"},
            "trafficserver": {"traffic_server": "trafficserver"}}


def packages(names):
    """The programs of a run with these servers, and the package of each."""
    found = dict(TOOLS)
    for name in names:
        found |= PROGRAMS.get(name, {})
    return found


PEERS = {"nginx": nginx, "varnish": varnish, "squid": squid, "trafficserver": trafficserver}
# They give their files to a user of their own, which only root may do.
OTHER_USERS = ("squid", "trafficserver")


def memory_folder(least=8 << 30):
    """A folder in memory with enough room, or `None`."""
    try:
        room = os.statvfs("/dev/shm")
        return "/dev/shm" if room.f_bavail * room.f_frsize >= least else None
    except OSError:
        return None


def launch(name, start_server, parent, origin_port, setting, log):
    """Starts a server in a folder of its own; returns its port, or `None` if it does not answer."""
    port = free_port()
    folder = tempfile.mkdtemp(prefix=f"{name}-", dir=parent)
    os.chmod(folder, 0o755)
    start_server(folder, port, origin_port, setting, log)
    return port if answers(port, "/1k/start") else None
