import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

/**
 * Kafka's own client, which asks for reassignments and for deletions of records. It prints a line
 * for each: "done", or the class of the exception and its message.
 */
class OnePolicy {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0], "client.id", "java");
        try (Admin admin = Admin.create(settings)) {
            Map<Integer, List<Integer>> rows = Map.of(0, List.of(1, 2), 1, List.of(2, 3));
            admin.createTopics(List.of(new NewTopic("ledger", rows), new NewTopic("free", rows))).all().get();
            for (String topic : List.of("ledger", "free")) {
                reassign(admin, topic, 0, List.of(3));
                reassign(admin, topic, 0, List.of(3, 2));
                told("records " + topic, admin.deleteRecords(
                    Map.of(new TopicPartition(topic, 1), RecordsToDelete.beforeOffset(0))).all());
            }
        }
    }

    private static void reassign(Admin admin, String topic, int partition, List<Integer> brokers) throws Exception {
        NewPartitionReassignment wanted = new NewPartitionReassignment(brokers);
        told("reassign " + topic + " " + brokers, admin.alterPartitionReassignments(
            Map.of(new TopicPartition(topic, partition), Optional.of(wanted))).all());
    }

    private static void told(String what, KafkaFuture<Void> answer) throws Exception {
        try {
            answer.get();
            System.out.println(what + ": done");
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            System.out.println(what + ": " + cause.getClass().getSimpleName() + ": " + cause.getMessage());
        }
    }
}
