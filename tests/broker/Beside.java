import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.clients.admin.ExpireDelegationTokenOptions;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.token.delegation.DelegationToken;

/**
 * Asks a Kafka for ACLs, users, quotas and tokens: the argument is the address of a listener where
 * admin logs in by PLAIN. Each line of the input is a command with its operands between tabs; the
 * answer ends with END.
 */
class Beside {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        try (Admin admin = Admin.create(settings(arguments[0], "PLAIN", "admin", "admin"))) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                String[] words = line.split("\t");
                switch (words[0]) {
                    case "describe" -> describe(admin).forEach(output::println);
                    case "acl" -> admin.createAcls(List.of(binding(words))).all().get();
                    case "no-acl" -> admin.deleteAcls(List.of(binding(words).toFilter())).all().get();
                    case "token" -> output.println(create(admin, words[1]));
                    case "no-token" -> expire(admin, words[1]);
                    case "login" -> output.println(canLogIn(settings(arguments[0], words[1], words[2], words[3])));
                    default -> throw new IllegalArgumentException(line);
                }
                output.println("END");
            }
        }
    }

    private static Map<String, Object> settings(String address, String mechanism, String user, String password) {
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", address);
        settings.put("security.protocol", "SASL_PLAINTEXT");
        settings.put("sasl.mechanism", mechanism);
        settings.put("request.timeout.ms", "10000");
        settings.put("default.api.timeout.ms", "20000");
        settings.put("sasl.jaas.config", "org.apache.kafka.common.security." + module
            + " required username=\"" + user + "\" password=\"" + password + "\";");
        return settings;
    }

    private static AclBinding binding(String[] words) {
        ResourcePattern pattern = new ResourcePattern(ResourceType.valueOf(words[1]), words[2], PatternType.valueOf(words[3]));
        return new AclBinding(pattern, new AccessControlEntry(
            words[4], words[5], AclOperation.valueOf(words[6]), AclPermissionType.valueOf(words[7])));
    }

    private static Set<String> describe(Admin admin) throws Exception {
        Set<String> found = new TreeSet<>();
        for (AclBinding each : admin.describeAcls(AclBindingFilter.ANY).values().get()) {
            ResourcePattern pattern = each.pattern();
            AccessControlEntry entry = each.entry();
            found.add(String.join("\t", "acl", pattern.resourceType().name(), pattern.name(), pattern.patternType().name(),
                entry.principal(), entry.host(), entry.operation().name(), entry.permissionType().name()));
        }
        for (DelegationToken token : admin.describeDelegationToken().delegationTokens().get()) {
            found.add(String.join("\t", "token", token.tokenInfo().tokenId(), token.tokenInfo().ownerAsString(),
                token.tokenInfo().tokenRequester().toString(), token.tokenInfo().renewersAsString().toString()));
        }
        admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().forEach((entity, quotas) ->
            quotas.forEach((key, value) -> found.add(String.join("\t", "quota", entity.entries().toString(), key + "=" + value))));
        admin.describeUserScramCredentials().all().get().forEach((user, described) ->
            described.credentialInfos().forEach(info ->
                found.add(String.join("\t", "user", user, info.mechanism().mechanismName() + "=" + info.iterations()))));
        return found;
    }

    private static String create(Admin admin, String renewer) throws Exception {
        CreateDelegationTokenOptions options = new CreateDelegationTokenOptions();
        options.renewers(List.of(new org.apache.kafka.common.security.auth.KafkaPrincipal("User", renewer)));
        return admin.createDelegationToken(options).delegationToken().get().tokenInfo().tokenId();
    }

    private static void expire(Admin admin, String id) throws Exception {
        for (DelegationToken token : admin.describeDelegationToken().delegationTokens().get()) {
            if (token.tokenInfo().tokenId().equals(id)) {
                admin.expireDelegationToken(token.hmac(), new ExpireDelegationTokenOptions().expiryTimePeriodMs(-1)).expiryTimestamp().get();
            }
        }
    }

    private static boolean canLogIn(Map<String, Object> settings) {
        try (Admin admin = Admin.create(settings)) {
            admin.describeCluster().nodes().get();
            return true;
        } catch (java.util.concurrent.ExecutionException error) {
            return false;
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}
