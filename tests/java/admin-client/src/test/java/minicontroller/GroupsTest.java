package minicontroller;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.errors.TransactionalIdNotFoundException;
import org.apache.kafka.common.errors.UnknownMemberIdException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.junit.jupiter.api.Test;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** The offsets of groups, transactions where there are none, and what needs KRaft. */
class GroupsTest extends ClusterTest {
    private static void refused(Class<? extends Exception> reason, KafkaFuture<?> future) {
        ExecutionException error = assertThrows(ExecutionException.class, future::get);
        assertInstanceOf(reason, error.getCause());
    }

    private TopicPartition created() throws Exception {
        admin.createTopics(Set.of(new NewTopic(topic, 2, (short) 1))).all().get();
        until(() -> admin.listTopics().names().get(), names -> names.contains(topic));
        return new TopicPartition(topic, 1);
    }

    /** Offsets are set, read, removed; the group comes and goes with them. */
    @Test
    void offsetsComeAndGo() throws Exception {
        String group = "group-of-" + topic;
        TopicPartition partition = created();
        OffsetAndMetadata offset = new OffsetAndMetadata(42, "by hand");
        admin.alterConsumerGroupOffsets(group, Map.of(partition, offset)).all().get();
        assertEquals(Map.of(partition, offset), admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get());
        ConsumerGroupDescription seen = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        assertEquals("Empty", seen.state().toString());
        assertTrue(seen.members().isEmpty());
        assertTrue(admin.listConsumerGroups().all().get().stream().anyMatch(each -> each.groupId().equals(group)));
        TopicPartition missing = new TopicPartition(topic, 7);
        refused(UnknownTopicOrPartitionException.class,
            admin.alterConsumerGroupOffsets(group, Map.of(missing, offset)).partitionResult(missing));
        admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all().get();
        refused(GroupIdNotFoundException.class, admin.deleteConsumerGroups(Set.of(group)).all());
        admin.alterConsumerGroupOffsets(group, Map.of(partition, offset)).all().get();
        admin.deleteConsumerGroups(Set.of(group)).all().get();
        assertTrue(admin.listConsumerGroups().all().get().stream().noneMatch(each -> each.groupId().equals(group)));
    }

    /** Nothing is written, so there are neither transactions nor producers; fencing them succeeds. */
    @Test
    void transactionsAreNone() throws Exception {
        TopicPartition partition = created();
        assertTrue(admin.listTransactions().all().get().isEmpty());
        assertTrue(admin.describeProducers(List.of(partition)).partitionResult(partition).get().activeProducers().isEmpty());
        String id = "id-of-" + topic;
        refused(TransactionalIdNotFoundException.class, admin.describeTransactions(Set.of(id)).description(id));
        admin.fenceProducers(Set.of(id)).all().get();
        admin.abortTransaction(new AbortTransactionSpec(partition, 42, (short) 0, 0)).all().get();
    }

    /** Groups have no members: who is named is unknown, and the client finds nobody to remove. */
    @Test
    void removesNoMembers() throws Exception {
        String group = "left-" + topic;
        admin.alterConsumerGroupOffsets(group, Map.of(created(), new OffsetAndMetadata(1))).all().get();
        Set<MemberToRemove> named = Set.of(new MemberToRemove("instance"));
        var options = new RemoveMembersFromConsumerGroupOptions(named);
        refused(UnknownMemberIdException.class, admin.removeMembersFromConsumerGroup(group, options).all());
        options = new RemoveMembersFromConsumerGroupOptions();
        refused(IllegalArgumentException.class, admin.removeMembersFromConsumerGroup(group, options).all());
        admin.deleteConsumerGroups(Set.of(group)).all().get();
    }

    /** There are no features, and what needs KRaft is not there. */
    @Test
    void needsNoKRaft() throws Exception {
        assertEquals(Map.of(), admin.describeFeatures().featureMetadata().get().finalizedFeatures());
        FeatureUpdate update = new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE);
        refused(InvalidRequestException.class, admin.updateFeatures(Map.of("f", update), new UpdateFeaturesOptions()).all());
        refused(UnsupportedVersionException.class, admin.unregisterBroker(1).all());
        refused(UnsupportedVersionException.class, admin.describeMetadataQuorum().quorumInfo());
    }
}
