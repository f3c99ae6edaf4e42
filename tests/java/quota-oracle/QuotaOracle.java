import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.function.Supplier;
import kafka.server.ControllerMutationQuota;
import kafka.server.ControllerMutationQuotaManager;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import scala.Option;

/**
 * Kafka's own quotas of changes, and its rate of connections, behind a pipe: each line is a command,
 * with tabs between the words.
 */
public final class QuotaOracle {
    private static long now = 1_000_000;
    private static ControllerMutationQuotaManager manager;
    private static Sensor connections;

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "new" -> begin(Integer.parseInt(words[1]), Integer.parseInt(words[2]), Double.parseDouble(words[3]));
                case "quota" -> manager.updateQuota(name(words[1]), name(words[2]), name(words[2]), quota(words[3]));
                case "time" -> now += Long.parseLong(words[1]);
                case "change" -> out.println(change(words));
                case "connect" -> out.println(connect(Integer.parseInt(words[1])));
                default -> throw new IllegalArgumentException(line);
            }
        }
        out.flush();
        System.exit(0);
    }

    private static void begin(int samples, int seconds, double connectionRate) {
        Metrics metrics = new Metrics(TIME);
        manager = new ControllerMutationQuotaManager(
            new ClientQuotaManagerConfig(samples, seconds), metrics, TIME, "oracle", Option.empty());
        connections = metrics.sensor("connections");
        MetricConfig config = new MetricConfig()
            .timeWindow(seconds, java.util.concurrent.TimeUnit.SECONDS)
            .samples(samples)
            .quota(new Quota(connectionRate, true));
        MetricName name = metrics.metricName("rate", "oracle");
        connections.add(name, new Rate(), config);
    }

    private static Option<String> name(String word) {
        return word.equals("-") ? Option.empty() : Option.apply(word);
    }

    private static Option<Quota> quota(String word) {
        return word.equals("-") ? Option.empty() : Option.apply(new Quota(Double.parseDouble(word), true));
    }

    /** "change", "strict" or not, the user, the client id and the number of partitions. */
    private static String change(String[] words) throws Exception {
        Session session = new Session(
            new KafkaPrincipal(KafkaPrincipal.USER_TYPE, words[2]), InetAddress.getLoopbackAddress());
        ControllerMutationQuota quota = words[1].equals("strict")
            ? manager.newStrictQuotaFor(session, words[3])
            : manager.newPermissiveQuotaFor(session, words[3]);
        boolean refused = false;
        try {
            quota.record(Double.parseDouble(words[4]));
        } catch (ThrottlingQuotaExceededException exceeded) {
            refused = true;
        }
        return refused + "\t" + quota.throttleTime();
    }

    /** Some connections at once; the rate if it is too high. */
    private static String connect(int count) {
        try {
            connections.record(count, now);
            return "-";
        } catch (QuotaViolationException exceeded) {
            return Double.toString(exceeded.value());
        }
    }

    private static final Time TIME = new Time() {
        @Override
        public long milliseconds() {
            return now;
        }

        @Override
        public long nanoseconds() {
            return now * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadline) {
            throw new UnsupportedOperationException();
        }
    };
}
