import java.io.File;
import java.nio.file.Files;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Two members of a share group take the records of a topic; each record is released once, and accepted
 * when it comes again. The arguments are those of Clients; so is what it prints.
 */
class Share {
    static final Duration PATIENCE = Duration.ofSeconds(90);
    static final int RECORDS = 60;

    public static void main(String[] arguments) throws Exception {
        for (int index = 0; index < arguments.length; index += 3) {
            one(index / 3, arguments[index], arguments[index + 1]);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static void one(int number, String file, String prefix) throws Exception {
        Properties read = new Properties();
        try (var reader = Files.newBufferedReader(new File(file).toPath())) {
            read.load(reader);
        }
        Map<String, Object> settings = new HashMap<>();
        read.forEach((key, value) -> settings.put((String) key, value));
        String topic = prefix + "work";
        String group = prefix + "workers";
        try (Admin admin = Admin.create(settings)) {
            admin.createTopics(List.of(new NewTopic(topic, 2, (short) 2))).all().get();
            var resource = new ConfigResource(ConfigResource.Type.GROUP, group);
            var change = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
            String configured;
            try {
                admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
                configured = "set";
            } catch (java.util.concurrent.ExecutionException error) {
                configured = error.getCause().toString();
            }
            System.out.println(number + " configs of the group = " + configured);
            try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
                for (int each = 0; each < RECORDS; each++) {
                    producer.send(new ProducerRecord<>(topic, each % 2, null, "" + each));
                }
            }
            System.out.println(number + " taken = " + taken(settings, topic, group));
            var described = admin.describeShareGroups(List.of(group)).all().get().get(group);
            System.out.println(number + " group = " + described.groupState() + " " + described.members().size());
            var listed = new TreeSet<String>();
            admin.listGroups(ListGroupsOptions.forShareGroups()).all().get().forEach(each -> listed.add(each.groupId() + " " + each.type()));
            listed.removeIf(each -> !each.startsWith(prefix));
            System.out.println(number + " listed = " + listed + " " + GroupType.SHARE);
        }
    }

    /** How often each record was given out: it is released the first time. */
    static String taken(Map<String, Object> settings, String topic, String group) {
        Map<String, Object> more = new HashMap<>(settings);
        more.put("group.id", group);
        more.put("share.acknowledgement.mode", "explicit");
        Map<Integer, Integer> deliveries = new TreeMap<>();
        List<String> failures = new ArrayList<>();
        Instant deadline = Instant.now().plus(PATIENCE);
        try (var one = new KafkaShareConsumer<>(more, new StringDeserializer(), new StringDeserializer());
             var other = new KafkaShareConsumer<>(more, new StringDeserializer(), new StringDeserializer())) {
            var members = List.of(one, other);
            members.forEach(each -> each.subscribe(List.of(topic)));
            while (!isWhole(deliveries) && Instant.now().isBefore(deadline)) {
                for (var member : members) {
                    for (ConsumerRecord<String, String> each : member.poll(Duration.ofMillis(200))) {
                        int times = deliveries.merge(Integer.valueOf(each.value()), 1, Integer::sum);
                        member.acknowledge(each, times == 1 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    }
                    member.commitSync(Duration.ofSeconds(30)).forEach((partition, error) -> error.ifPresent(it -> failures.add(it.toString())));
                }
            }
        }
        return deliveries + " " + failures;
    }

    static boolean isWhole(Map<Integer, Integer> deliveries) {
        return deliveries.size() == RECORDS && deliveries.values().stream().allMatch(times -> times >= 2);
    }
}
