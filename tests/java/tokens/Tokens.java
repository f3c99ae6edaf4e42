import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateDelegationTokenOptions;
import org.apache.kafka.clients.admin.ExpireDelegationTokenOptions;
import org.apache.kafka.clients.admin.RenewDelegationTokenOptions;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.token.delegation.DelegationToken;

/**
 * Kafka's own client with delegation tokens. Each line of the input is a command with its operands
 * between tabs: what to do, where, by which mechanism and as whom, and what else it needs. The
 * answer is one line: what Kafka's client returned, or the class of the exception.
 */
class Tokens {
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split("\t");
            try (Admin admin = Admin.create(settings(words[1], words[2], words[3], words[4]))) {
                output.println(answer(admin, words));
            } catch (ExecutionException error) {
                output.println(error.getCause().getClass().getSimpleName());
            }
        }
    }

    private static String answer(Admin admin, String[] words) throws Exception {
        return switch (words[0]) {
            case "login" -> {
                admin.describeCluster().nodes().get();
                yield "in";
            }
            case "create" -> {
                CreateDelegationTokenOptions options = new CreateDelegationTokenOptions();
                options.renewers(List.of(new KafkaPrincipal("User", words[5])));
                if (words.length > 6) {
                    options.owner(new KafkaPrincipal("User", words[6]));
                }
                yield told(admin.createDelegationToken(options).delegationToken().get());
            }
            case "describe" -> String.join("\t", admin.describeDelegationToken().delegationTokens().get().stream()
                .map(token -> token.tokenInfo().tokenId()).sorted().toList());
            case "renew" -> String.valueOf(admin.renewDelegationToken(
                hmac(words[5]), new RenewDelegationTokenOptions().renewTimePeriodMs(Long.parseLong(words[6]))).expiryTimestamp().get());
            case "expire" -> String.valueOf(admin.expireDelegationToken(
                hmac(words[5]), new ExpireDelegationTokenOptions().expiryTimePeriodMs(Long.parseLong(words[6]))).expiryTimestamp().get());
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    private static String told(DelegationToken token) {
        return String.join("\t", token.tokenInfo().tokenId(), token.hmacAsBase64String(),
            token.tokenInfo().ownerAsString(), token.tokenInfo().tokenRequesterAsString(),
            token.tokenInfo().renewersAsString().toString());
    }

    private static byte[] hmac(String text) {
        return Base64.getDecoder().decode(text);
    }

    /** By PLAIN as a user; by SCRAM with a token. */
    private static Map<String, Object> settings(String address, String mechanism, String user, String password) {
        String module = mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", address);
        settings.put("security.protocol", "SASL_PLAINTEXT");
        settings.put("sasl.mechanism", mechanism);
        settings.put("request.timeout.ms", "10000");
        settings.put("default.api.timeout.ms", "20000");
        settings.put("sasl.jaas.config", "org.apache.kafka.common.security." + module
            + " required username=\"" + user + "\" password=\"" + password + "\""
            + (mechanism.equals("PLAIN") ? "" : " tokenauth=\"true\"") + ";");
        return settings;
    }
}
