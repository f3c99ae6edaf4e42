import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Goes through what Kafka's own clients do, and prints what came of each step: a line with the step's
 * name and what it saw, or the error. Nothing that it prints differs between two clusters that are
 * alike. The arguments are a properties file for clients, how the names of what it makes begin, and the
 * name of a topic that may be forbidden; further triples are gone through at the same time. A line begins
 * with the number of its triple.
 */
class Clients {
    static final Duration PATIENCE = Duration.ofSeconds(60);
    static final int RECORDS = 40;

    final Map<String, Object> settings = new HashMap<>();
    final int number;
    final String prefix;
    final String topic;
    final String paid;
    final String forbidden;
    Admin admin;

    Clients(int number, String file, String prefix, String forbidden) throws Exception {
        try (Reader reader = Files.newBufferedReader(Path.of(file))) {
            Properties read = new Properties();
            read.load(reader);
            read.forEach((key, value) -> settings.put((String) key, value));
        }
        this.number = number;
        this.prefix = prefix;
        this.forbidden = forbidden;
        topic = prefix + "topic";
        paid = prefix + "paid";
    }

    public static void main(String[] arguments) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int index = 0; index < arguments.length; index += 3) {
            var each = new Clients(index / 3, arguments[index], arguments[index + 1], arguments[index + 2]);
            threads.add(new Thread(each::all));
        }
        threads.forEach(Thread::start);
        for (Thread each : threads) {
            each.join();
        }
        System.out.flush();
        Runtime.getRuntime().halt(0); // nothing is left to wait for
    }

    void step(String name, Callable<?> body) {
        String seen;
        try {
            seen = String.valueOf(body.call());
        } catch (ExecutionException error) {
            seen = error.getCause().getClass().getSimpleName() + ": " + error.getCause().getMessage();
        } catch (Exception error) {
            seen = error.getClass().getSimpleName() + ": " + error.getMessage();
        }
        System.out.println(number + " " + name + " = " + seen.replace("\n", " "));
    }

    static <T> T until(Callable<T> look, java.util.function.Predicate<T> right) throws Exception {
        Instant deadline = Instant.now().plus(PATIENCE);
        while (true) {
            T seen = null;
            ExecutionException failed = null;
            try {
                seen = look.call();
            } catch (ExecutionException error) {
                failed = error;
            }
            if (failed == null && right.test(seen)) {
                return seen;
            }
            if (Instant.now().isAfter(deadline)) {
                throw new IllegalStateException("it is still " + (failed == null ? seen : failed));
            }
            Thread.sleep(20);
        }
    }

    Map<String, Object> with(Object... more) {
        Map<String, Object> result = new HashMap<>(settings);
        for (int index = 0; index < more.length; index += 2) {
            result.put((String) more[index], more[index + 1]);
        }
        return result;
    }

    void all() {
        admin = Admin.create(with("default.api.timeout.ms", "60000"));
        step("create", this::create);
        step("create again", () -> admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get());
        step("refused", () -> admin.createTopics(List.of(new NewTopic(forbidden, 1, (short) 1))).all().get());
        step("dry run", () -> admin.createTopics(List.of(new NewTopic(prefix + "dry", 2, (short) 2)),
            new org.apache.kafka.clients.admin.CreateTopicsOptions().validateOnly(true)).numPartitions(prefix + "dry").get());
        step("grow", this::grow);
        step("configs", this::configs);
        step("produce", this::produce);
        step("offsets", this::offsets);
        step("consume, classic", () -> consume("classic"));
        step("consume, consumer", () -> consume("consumer"));
        step("describe groups", this::groups);
        step("transactions", this::transactions);
        step("delete records", () -> admin.deleteRecords(Map.of(new TopicPartition(topic, 0), RecordsToDelete.beforeOffset(3)))
            .lowWatermarks().get(new TopicPartition(topic, 0)).get().lowWatermark());
        step("elect", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(new TopicPartition(topic, 0))).partitions().get().values()
            .stream().map(each -> each.map(error -> error.getClass().getSimpleName()).orElse("elected")).toList());
        step("reassign", this::reassign);
        step("acls", this::acls);
        step("quotas", this::quotas);
        step("scram", () -> admin.describeUserScramCredentials(List.of(prefix + "nobody")).all().get());
        step("cluster", () -> admin.describeCluster().nodes().get().stream().map(node -> node.id()).sorted().toList());
        step("quorum", () -> admin.describeMetadataQuorum().quorumInfo().get().leaderId());
        step("features", () -> new TreeMap<>(admin.describeFeatures().featureMetadata().get().finalizedFeatures()).keySet());
        step("log directories", () -> admin.describeLogDirs(List.of(1, 2)).allDescriptions().get().size());
        step("delete groups", () -> admin.deleteConsumerGroups(List.of(prefix + "classic")).all().get());
        step("delete by id", this::deleteById);
        step("delete", () -> admin.deleteTopics(List.of(paid, prefix + "missing")).topicNameValues().get(prefix + "missing").get());
        admin.close();
    }

    Object create() throws Exception {
        var made = admin.createTopics(List.of(
            new NewTopic(topic, Map.of(0, List.of(1, 2), 1, List.of(2, 1))).configs(Map.of("retention.ms", "3600000")),
            new NewTopic(paid, Optional.of(2), Optional.of((short) 2)),
            new NewTopic(prefix + "gone", 1, (short) 1)));
        made.all().get();
        until(() -> admin.describeTopics(List.of(topic, paid, prefix + "gone")).allTopicNames().get(),
            seen -> seen.values().stream().allMatch(Clients::isWhole));
        return made.numPartitions(topic).get() + " " + made.config(topic).get().get("retention.ms").value();
    }

    static boolean isWhole(TopicDescription described) {
        return described.partitions().stream().allMatch(each -> each.leader() != null && each.isr().size() == each.replicas().size());
    }

    Object grow() throws Exception {
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
        var seen = until(() -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic),
            described -> described.partitions().size() == 3 && isWhole(described));
        return seen.partitions().stream().map(each -> each.replicas().size()).toList();
    }

    Object configs() throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        var change = new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.APPEND);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(change))).all().get();
        return until(() -> admin.describeConfigs(List.of(resource)).all().get().get(resource).get("cleanup.policy").value(),
            "delete,compact"::equals);
    }

    Object produce() throws Exception {
        List<Long> offsets = new ArrayList<>();
        try (var producer = new KafkaProducer<>(with("acks", "all", "compression.type", "lz4"), new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < RECORDS; number++) {
                var sent = producer.send(new ProducerRecord<>(topic, number % 2, "key-" + number, "value-" + number));
                offsets.add(sent.get().offset());
            }
        }
        return offsets;
    }

    Object offsets() throws Exception {
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        for (int number = 0; number < 3; number++) {
            asked.put(new TopicPartition(topic, number), OffsetSpec.latest());
        }
        Map<Integer, Long> seen = new TreeMap<>();
        admin.listOffsets(asked).all().get().forEach((partition, info) -> seen.put(partition.partition(), info.offset()));
        return seen;
    }

    Object consume(String protocol) {
        Set<String> seen = new TreeSet<>();
        Map<String, Object> more = with("group.id", prefix + protocol, "auto.offset.reset", "earliest",
            "group.protocol", protocol, "isolation.level", "read_committed");
        try (var consumer = new KafkaConsumer<>(more, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            read(consumer, seen, RECORDS);
            consumer.commitSync(Duration.ofSeconds(60));
            Set<TopicPartition> partitions = Set.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
            List<Long> committed = consumer.committed(partitions).values().stream().map(OffsetAndMetadata::offset).toList();
            return seen.size() + " " + committed;
        }
    }

    static void read(KafkaConsumer<String, String> consumer, Set<String> seen, int count) {
        Instant deadline = Instant.now().plus(PATIENCE);
        while (seen.size() < count && Instant.now().isBefore(deadline)) {
            for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(200))) {
                seen.add(each.value());
            }
        }
    }

    Object groups() throws Exception {
        var seen = until(() -> admin.describeConsumerGroups(List.of(prefix + "classic")).all().get().get(prefix + "classic"),
            group -> group.members().isEmpty());
        Set<String> listed = new TreeSet<>();
        admin.listConsumerGroups().all().get().forEach(each -> listed.add(each.groupId()));
        listed.removeIf(name -> !name.startsWith(prefix));
        return seen.state() + " " + listed;
    }

    Object transactions() throws Exception {
        try (var producer = new KafkaProducer<>(with("transactional.id", prefix + "till"), new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(paid, 0, "", "aborted")).get();
            producer.abortTransaction();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(paid, 0, "", "first")).get();
            producer.send(new ProducerRecord<>(paid, 1, "", "second")).get();
            producer.sendOffsetsToTransaction(Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(7)),
                new org.apache.kafka.clients.consumer.ConsumerGroupMetadata(prefix + "paying"));
            producer.commitTransaction();
        }
        Set<String> seen = new TreeSet<>();
        Map<String, Object> more = with("isolation.level", "read_committed", "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(more, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(new TopicPartition(paid, 0), new TopicPartition(paid, 1)));
            read(consumer, seen, 2);
        }
        var state = until(() -> admin.describeTransactions(List.of(prefix + "till")).all().get().get(prefix + "till").state().toString(),
            "CompleteCommit"::equals);
        return seen + " " + state + " " + admin.listConsumerGroupOffsets(prefix + "paying").partitionsToOffsetAndMetadata().get()
            .get(new TopicPartition(topic, 0)).offset();
    }

    Object reassign() throws Exception {
        TopicPartition partition = new TopicPartition(topic, 1);
        admin.alterPartitionReassignments(Map.of(partition, Optional.of(new NewPartitionReassignment(List.of(1, 2))))).all().get();
        until(() -> admin.listPartitionReassignments(Set.of(partition)).reassignments().get(), Map::isEmpty);
        return until(() -> admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().get(1).replicas()
            .stream().map(node -> node.id()).toList(), List.of(1, 2)::equals);
    }

    Object acls() throws Exception {
        var resource = new ResourcePattern(ResourceType.TOPIC, prefix + "acl", PatternType.LITERAL);
        var binding = new AclBinding(resource, new AccessControlEntry("User:carol", "*", AclOperation.READ, AclPermissionType.ALLOW));
        AclBindingFilter filter = binding.toFilter();
        admin.createAcls(List.of(binding)).all().get();
        var found = until(() -> admin.describeAcls(filter).values().get(), seen -> !seen.isEmpty());
        return found.size() + " " + admin.deleteAcls(List.of(filter)).all().get().size();
    }

    Object quotas() throws Exception {
        var entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, prefix + "user"));
        var filter = ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.USER, prefix + "user")));
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(
            new ClientQuotaAlteration.Op("producer_byte_rate", 1024.0 * 1024))))).all().get();
        var seen = until(() -> admin.describeClientQuotas(filter).entities().get(), found -> !found.isEmpty());
        return seen.get(entity);
    }

    Object deleteById() throws Exception {
        String name = prefix + "gone";
        var id = admin.describeTopics(List.of(name)).allTopicNames().get().get(name).topicId();
        admin.deleteTopics(org.apache.kafka.common.TopicCollection.ofTopicIds(List.of(id))).all().get();
        return until(() -> admin.listTopics().names().get(), names -> !names.contains(name)).contains(topic);
    }
}
