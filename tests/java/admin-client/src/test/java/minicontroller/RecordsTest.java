package minicontroller;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.errors.ElectionNotNeededException;
import org.apache.kafka.common.errors.LogDirNotFoundException;
import org.apache.kafka.common.errors.OffsetOutOfRangeException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** The leaders of partitions, their records, which are none, and where their logs would lie. */
class RecordsTest extends ClusterTest {
    private int leader() throws Exception {
        Node leader = describe(topic).partitions().get(0).leader();
        return leader == null ? -1 : leader.id();
    }

    /** A partition whose preferred replica changes is led by it after an election. */
    @Test
    void electsThePreferredLeader() throws Exception {
        create(new NewTopic(topic, Map.of(0, List.of(1, 2))));
        TopicPartition partition = new TopicPartition(topic, 0);
        TopicPartition missing = new TopicPartition(topic, 7);
        var asked = admin.electLeaders(ElectionType.PREFERRED, Set.of(partition, missing)).partitions().get();
        assertInstanceOf(ElectionNotNeededException.class, asked.get(partition).orElseThrow());
        assertInstanceOf(UnknownTopicOrPartitionException.class, asked.get(missing).orElseThrow());
        var other = Optional.of(new NewPartitionReassignment(List.of(2, 1)));
        admin.alterPartitionReassignments(Map.of(partition, other)).all().get();
        until(() -> admin.listPartitionReassignments(Set.of(partition)).reassignments().get(), Map::isEmpty);
        assertEquals(1, leader());
        var elected = admin.electLeaders(ElectionType.PREFERRED, Set.of(partition)).partitions().get();
        assertEquals(Map.of(partition, Optional.empty()), elected);
        until(this::leader, led -> led == 2);
        var unclean = admin.electLeaders(ElectionType.UNCLEAN, Set.of(partition)).partitions().get();
        assertInstanceOf(ElectionNotNeededException.class, unclean.get(partition).orElseThrow());
    }

    /** There are no records to delete, and no offset but 0. */
    @Test
    void deletesNoRecords() throws Exception {
        create(new NewTopic(topic, Map.of(0, List.of(2))));
        TopicPartition partition = new TopicPartition(topic, 0);
        var all = Map.of(partition, RecordsToDelete.beforeOffset(-1));
        assertEquals(0, admin.deleteRecords(all).lowWatermarks().get(partition).get().lowWatermark());
        var beyond = Map.of(partition, RecordsToDelete.beforeOffset(3));
        refusal(OffsetOutOfRangeException.class, admin.deleteRecords(beyond).lowWatermarks().get(partition));
        for (OffsetSpec spec : List.of(OffsetSpec.earliest(), OffsetSpec.latest())) {
            ListOffsetsResultInfo end = admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get();
            assertEquals(0, end.offset());
        }
    }

    /** Each replica lies in a directory of its broker, and cannot be moved to one that is not there. */
    @Test
    void describesLogDirs() throws Exception {
        create(new NewTopic(topic, Map.of(0, List.of(1, 3))));
        TopicPartition partition = new TopicPartition(topic, 0);
        Map<Integer, Map<String, LogDirDescription>> seen = admin.describeLogDirs(List.of(1, 2, 3)).allDescriptions().get();
        for (int broker : List.of(1, 2, 3)) {
            boolean held = seen.get(broker).values().stream().anyMatch(dir -> dir.replicaInfos().containsKey(partition));
            assertEquals(broker != 2, held);
        }
        TopicPartitionReplica replica = new TopicPartitionReplica(topic, 0, 3);
        refusal(LogDirNotFoundException.class, admin.alterReplicaLogDirs(Map.of(replica, "/nowhere")).values().get(replica));
        String own = seen.get(3).keySet().iterator().next();
        admin.alterReplicaLogDirs(Map.of(replica, own)).all().get();
        String now = admin.describeReplicaLogDirs(Set.of(replica)).values().get(replica).get().getCurrentReplicaLogDir();
        assertTrue(seen.get(3).containsKey(now));
    }
}
