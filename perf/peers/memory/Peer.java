import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CyclicBarrier;

/**
 * Performs the look-ups of bench-cli on Caffeine or ConcurrentHashMap: a line in, a line of JSON out.
 *
 *   memory-hit keys=1024 threads=1 key=held milliseconds=200
 *
 * key=parsed: each look-up makes its key from bytes, as in a server.
 * key=held: the caller has its own key, equal to the stored one, with a cached hash.
 * key=same: the key is the stored String with a cached hash, and is found by identity.
 */
public final class Peer {
    static final int KEY_SIZE = 46;
    static final int BODY_SIZE = 128;
    static final int CHUNK = 1024;
    static final int SEQUENCE_LENGTH = 1 << 18;
    static final String PREFIX = "https://example.test/assets/";

    /** The measured store. Each process loads only one implementation. */
    interface Store {
        byte[] get(String key);
        void put(String key, byte[] body);
        String configuration();
    }

    /** Caffeine bounded by weight, as its documentation shows for values of different sizes. */
    static final class CaffeineStore implements Store {
        private final Cache<String, byte[]> cache = Caffeine.newBuilder()
            .maximumWeight(1L << 30)
            .weigher((String key, byte[] body) -> key.length() + body.length + 64)
            .build();

        public byte[] get(String key) { return cache.getIfPresent(key); }
        public void put(String key, byte[] body) { cache.put(key, body); }
        public String configuration() { return "Caffeine, maximumWeight 1 GiB with a weigher"; }
    }

    /** A map without bound, eviction or expiry, which shows the cost of the map alone. */
    static final class MapStore implements Store {
        private final ConcurrentHashMap<String, byte[]> map = new ConcurrentHashMap<>();

        public byte[] get(String key) { return map.get(key); }
        public void put(String key, byte[] body) { map.put(key, body); }
        public String configuration() { return "ConcurrentHashMap, unbounded"; }
    }

    /** The keys of one key count, created on first use. */
    static final class Fixture {
        final Store store;
        final String[] keys;
        final String[] equalKeys;
        final byte[] keyBytes;
        final int[] sequence = new int[SEQUENCE_LENGTH];

        Fixture(Store store, int count) {
            this.store = store;
            keys = new String[count];
            equalKeys = new String[count];
            keyBytes = new byte[count * KEY_SIZE];
            for (int number = 0; number < count; number++) {
                String digits = Integer.toString(number);
                String zeros = "0".repeat(KEY_SIZE - PREFIX.length() - digits.length());
                keys[number] = PREFIX + zeros + digits;
                byte[] bytes = keys[number].getBytes(StandardCharsets.ISO_8859_1);
                System.arraycopy(bytes, 0, keyBytes, number * KEY_SIZE, KEY_SIZE);
                byte[] body = new byte[BODY_SIZE];
                java.util.Arrays.fill(body, (byte) number);
                store.put(keys[number], body);
                equalKeys[number] = new String(bytes, StandardCharsets.ISO_8859_1);
                if (equalKeys[number].hashCode() == 0) throw new IllegalStateException();
            }
            long state = 1;
            for (int index = 0; index < SEQUENCE_LENGTH; index++) {
                state += 0x9E3779B97F4A7C15L;
                long mixed = (state ^ (state >>> 30)) * 0xBF58476D1CE4E5B9L;
                mixed = (mixed ^ (mixed >>> 27)) * 0x94D049BB133111EBL;
                mixed ^= mixed >>> 31;
                sequence[index] = (int) Long.remainderUnsigned(mixed, count);
            }
        }

        long held(String[] keys, int thread, int chunk) {
            long correct = 0;
            int first = chunk * CHUNK + thread * 65537;
            for (int step = first; step < first + CHUNK; step++) {
                int number = sequence[step & (SEQUENCE_LENGTH - 1)];
                byte[] body = store.get(keys[number]);
                if (body != null && body[0] == (byte) number) correct++;
            }
            return correct;
        }

        long parsed(int thread, int chunk) {
            long correct = 0;
            int first = chunk * CHUNK + thread * 65537;
            for (int step = first; step < first + CHUNK; step++) {
                int number = sequence[step & (SEQUENCE_LENGTH - 1)];
                String key =
                    new String(keyBytes, number * KEY_SIZE, KEY_SIZE, StandardCharsets.ISO_8859_1);
                byte[] body = store.get(key);
                if (body != null && body[0] == (byte) number) correct++;
            }
            return correct;
        }
    }

    /** One thread of a run. */
    static final class Runner extends Thread {
        final Fixture fixture;
        final int number;
        final String form;
        final long nanoseconds;
        final CyclicBarrier line;
        long operations;
        long correct;
        /** The time of the median chunk, as in bench-cli. */
        double nanosecondsPerOperation;
        private final long[] times = new long[1 << 17];

        Runner(Fixture fixture, int number, String form, long nanoseconds, CyclicBarrier line) {
            this.fixture = fixture;
            this.number = number;
            this.form = form;
            this.nanoseconds = nanoseconds;
            this.line = line;
        }

        @Override public void run() {
            try {
                line.await();
            } catch (Exception error) {
                return;
            }
            long start = System.nanoTime();
            long last = start;
            int chunk = 0;
            do {
                correct += chunk(chunk);
                long now = System.nanoTime();
                if (chunk < times.length) times[chunk] = now - last;
                last = now;
                chunk++;
            } while (last - start < nanoseconds);
            operations = (long) chunk * CHUNK;
            int count = Math.min(chunk, times.length);
            java.util.Arrays.sort(times, 0, count);
            nanosecondsPerOperation = (double) times[(count - 1) / 2] / CHUNK;
        }

        private long chunk(int chunk) {
            switch (form) {
                case "parsed": return fixture.parsed(number, chunk);
                case "held": return fixture.held(fixture.equalKeys, number, chunk);
                case "same": return fixture.held(fixture.keys, number, chunk);
                default: return 0;
            }
        }
    }

    private final String kind;
    private final Map<Integer, Fixture> fixtures = new HashMap<>();

    Peer(String kind) { this.kind = kind; }

    Store makeStore() {
        return kind.equals("caffeine") ? new CaffeineStore() : new MapStore();
    }

    String memoryHit(Map<String, String> settings) throws InterruptedException {
        int keys = Integer.parseInt(settings.get("keys"));
        int threads = Integer.parseInt(settings.get("threads"));
        String form = settings.get("key");
        long nanoseconds = Long.parseLong(settings.get("milliseconds")) * 1_000_000;
        Fixture fixture = fixtures.computeIfAbsent(keys, count -> new Fixture(makeStore(), count));
        CyclicBarrier line = new CyclicBarrier(threads);
        Runner[] runners = new Runner[threads];
        for (int index = 0; index < threads; index++) {
            runners[index] = new Runner(fixture, index, form, nanoseconds, line);
            runners[index].start();
        }
        double time = 0;
        long operations = 0;
        long correct = 0;
        for (Runner runner : runners) {
            runner.join();
            time += runner.nanosecondsPerOperation / threads;
            operations += runner.operations;
            correct += runner.correct;
        }
        return String.format(
            java.util.Locale.ROOT,
            "{\"nanoseconds_per_operation\": %.3f, \"operations\": %d, \"correct\": %d}",
            time, operations, correct);
    }

    String answer(String line) throws InterruptedException {
        String[] words = line.trim().split("\\s+");
        Map<String, String> settings = new HashMap<>();
        for (String word : words) {
            int equals = word.indexOf('=');
            if (equals > 0) settings.put(word.substring(0, equals), word.substring(equals + 1));
        }
        switch (words[0]) {
            case "describe":
                return "{\"configuration\": \"" + makeStore().configuration() + ", Java "
                    + System.getProperty("java.version") + ", "
                    + java.lang.management.ManagementFactory.getGarbageCollectorMXBeans()
                        .get(0).getName() + "\"}";
            case "memory-hit":
                return memoryHit(settings);
            default:
                return "{\"error\": \"unknown command " + words[0] + "\"}";
        }
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Peer peer = new Peer(arguments[0]);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(peer.answer(line));
            System.out.flush();
        }
    }
}
