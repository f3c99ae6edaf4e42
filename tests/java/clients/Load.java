import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Commits transactions of two records, and aborts each tenth one, while a group reads what was committed.
 * It says how far it is until its input ends; then it reads the topic once more and tells what was lost,
 * what is there twice, and what was never committed. The arguments are a properties file for clients and
 * a topic with two partitions.
 */
class Load {
    static final Duration PATIENCE = Duration.ofSeconds(90);
    static final Set<String> read = ConcurrentHashMap.newKeySet();
    static volatile int committed;
    static volatile boolean ends;
    static volatile boolean closes;

    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        try (Reader reader = Files.newBufferedReader(Path.of(arguments[0]))) {
            Properties given = new Properties();
            given.load(reader);
            given.forEach((key, value) -> settings.put((String) key, value));
        }
        String topic = arguments[1];
        settings.put("reconnect.backoff.max.ms", "500");
        settings.put("default.api.timeout.ms", "120000");
        Thread writer = started(() -> write(settings, topic));
        Thread group = started(() -> follow(settings, topic));
        started(() -> {
            while (!ends) {
                System.out.println("committed " + committed + " read " + read.size());
                Thread.sleep(50);
            }
        });
        while (System.in.read() >= 0) {
            continue;
        }
        ends = true;
        writer.join();
        Instant deadline = Instant.now().plus(PATIENCE);
        while (read.size() < 2 * committed && Instant.now().isBefore(deadline)) {
            Thread.sleep(50);
        }
        closes = true;
        group.join();
        tell(settings, topic);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    interface Body {
        void run() throws Exception;
    }

    static Thread started(Body body) {
        Thread thread = new Thread(() -> {
            try {
                body.run();
            } catch (Exception error) {
                System.out.println("failed: " + error);
                System.out.flush();
                Runtime.getRuntime().halt(1);
            }
        });
        thread.start();
        return thread;
    }

    static Map<String, Object> with(Map<String, Object> settings, Map<String, Object> more) {
        Map<String, Object> result = new HashMap<>(settings);
        result.putAll(more);
        return result;
    }

    static void write(Map<String, Object> settings, String topic) {
        Map<String, Object> more = Map.of("transactional.id", topic, "max.block.ms", "120000");
        try (var producer = new KafkaProducer<>(with(settings, more), new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            for (int count = 0; !ends; count++) {
                boolean aborts = count % 10 == 9;
                producer.beginTransaction();
                for (int partition = 0; partition < 2; partition++) {
                    producer.send(new ProducerRecord<>(topic, partition, null, aborts ? "aborted" : partition + "-" + committed));
                }
                if (aborts) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                    committed++;
                }
            }
        }
    }

    static void follow(Map<String, Object> settings, String topic) {
        Map<String, Object> more = Map.of("group.id", topic, "auto.offset.reset", "earliest", "isolation.level", "read_committed",
            "session.timeout.ms", "6000", "heartbeat.interval.ms", "500");
        try (var consumer = new KafkaConsumer<>(with(settings, more), new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (!closes) {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(100))) {
                    read.add(each.value());
                }
                consumer.commitAsync((offsets, error) -> { });
            }
        }
    }

    /** Reads all that was committed, without a group. */
    static void tell(Map<String, Object> settings, String topic) {
        Set<String> there = new HashSet<>();
        int twice = 0;
        Map<String, Object> more = Map.of("isolation.level", "read_committed");
        try (var consumer = new KafkaConsumer<>(with(settings, more), new StringDeserializer(), new StringDeserializer())) {
            var partitions = List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            Instant deadline = Instant.now().plus(PATIENCE);
            while (partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each)) && Instant.now().isBefore(deadline)) {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(200))) {
                    twice += there.add(each.value()) ? 0 : 1;
                }
            }
        }
        int lost = 0;
        int unread = 0;
        for (int number = 0; number < committed; number++) {
            for (String value : List.of("0-" + number, "1-" + number)) {
                lost += there.contains(value) ? 0 : 1;
                unread += read.contains(value) ? 0 : 1;
            }
        }
        int uncommitted = there.size() - (2 * committed - lost);
        System.out.println("lost " + lost + " twice " + twice + " uncommitted " + uncommitted + " unread " + unread);
    }
}
