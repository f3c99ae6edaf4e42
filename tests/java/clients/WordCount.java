import java.io.File;
import java.nio.file.Files;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/**
 * Counts words with Kafka Streams, exactly once, in a store with a changelog; throws the store away, and
 * counts on from what the changelog has. The arguments are those of Clients; so is what it prints.
 */
class WordCount {
    static final Duration PATIENCE = Duration.ofSeconds(90);
    static final int LINES = 50;
    static final List<String> WORDS = List.of("what", "passes", "is", "counted", "and", "what", "is", "refused");

    final Map<String, Object> settings = new HashMap<>();
    final int number;
    final String prefix;
    final String lines;
    final String counts;

    WordCount(int number, String file, String prefix) throws Exception {
        Properties read = new Properties();
        try (var reader = Files.newBufferedReader(new File(file).toPath())) {
            read.load(reader);
        }
        read.forEach((key, value) -> settings.put((String) key, value));
        this.number = number;
        this.prefix = prefix;
        lines = prefix + "lines";
        counts = prefix + "counts";
    }

    public static void main(String[] arguments) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int index = 0; index < arguments.length; index += 3) {
            var each = new WordCount(index / 3, arguments[index], arguments[index + 1]);
            threads.add(new Thread(each::all));
        }
        threads.forEach(Thread::start);
        for (Thread each : threads) {
            each.join();
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    void say(String step, Object seen) {
        System.out.println(number + " " + step + " = " + seen);
    }

    Map<String, Object> with(Object... more) {
        Map<String, Object> result = new HashMap<>(settings);
        for (int index = 0; index < more.length; index += 2) {
            result.put((String) more[index], more[index + 1]);
        }
        return result;
    }

    void all() {
        try {
            count();
        } catch (Exception error) {
            say("error", error);
        }
    }

    void count() throws Exception {
        try (Admin admin = Admin.create(settings)) {
            admin.createTopics(List.of(new NewTopic(lines, 2, (short) 1), new NewTopic(counts, 2, (short) 1))).all().get();
            File state = Files.createTempDirectory("streams").toFile();
            write(LINES);
            counting(state, LINES);
            write(LINES);
            counting(state, 2 * LINES);
            state.delete();
            say("counts", counted(2 * LINES));
            var names = new TreeSet<>(admin.listTopics().names().get());
            names.removeIf(name -> !name.startsWith(prefix));
            say("topics", names);
            say("group", admin.describeConsumerGroups(List.of(prefix + "words")).all().get().get(prefix + "words").type());
        }
    }

    void write(int count) {
        try (var producer = new KafkaProducer<>(with("acks", "all"), new StringSerializer(), new StringSerializer())) {
            for (int each = 0; each < count; each++) {
                producer.send(new ProducerRecord<>(lines, each % 2, null, String.join(" ", WORDS)));
            }
        }
    }

    /** Runs the application until its store has the words of so many lines, and throws the store away. */
    void counting(File state, long wanted) throws Exception {
        var builder = new StreamsBuilder();
        builder.stream(lines, org.apache.kafka.streams.kstream.Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("store")
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream().to(counts, Produced.with(Serdes.String(), Serdes.Long()));
        Properties properties = new Properties();
        properties.putAll(with("application.id", prefix + "words", "processing.guarantee", "exactly_once_v2",
            "state.dir", state.getPath(), "replication.factor", "1", "commit.interval.ms", "100",
            "num.stream.threads", "1", "session.timeout.ms", "6000", "heartbeat.interval.ms", "1000", "consumer.auto.offset.reset", "earliest"));
        try (var streams = new KafkaStreams(builder.build(), properties)) {
            streams.cleanUp();
            streams.start();
            Instant deadline = Instant.now().plus(PATIENCE);
            var seen = new TreeMap<String, Long>();
            while (!expected(wanted).equals(seen) && Instant.now().isBefore(deadline)) {
                Thread.sleep(50);
                if (streams.state() == KafkaStreams.State.RUNNING) {
                    seen.clear();
                    var store = streams.store(StoreQueryParameters.fromNameAndType("store", QueryableStoreTypes.<String, Long>keyValueStore()));
                    try (var entries = store.all()) {
                        entries.forEachRemaining(each -> seen.put(each.key, each.value));
                    }
                }
            }
            say("store after " + wanted, seen + " " + streams.state());
            streams.close(PATIENCE);
            streams.cleanUp();
        }
    }

    static Map<String, Long> expected(long count) {
        var result = new TreeMap<String, Long>();
        WORDS.forEach(word -> result.merge(word, count, Long::sum));
        return result;
    }

    /** The last count of each word that was committed. */
    Map<String, Long> counted(long wanted) {
        var seen = new TreeMap<String, Long>();
        Instant deadline = Instant.now().plus(PATIENCE);
        Map<String, Object> more = with("isolation.level", "read_committed", "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(more, new StringDeserializer(), new LongDeserializer())) {
            consumer.assign(List.of(new TopicPartition(counts, 0), new TopicPartition(counts, 1)));
            while (!expected(wanted).equals(seen) && Instant.now().isBefore(deadline)) {
                for (ConsumerRecord<String, Long> each : consumer.poll(Duration.ofMillis(200))) {
                    seen.put(each.key(), each.value());
                }
            }
        }
        return seen;
    }
}
