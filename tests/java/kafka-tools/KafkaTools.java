import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import scala.Console$;
import scala.runtime.AbstractFunction0;

/**
 * Calls the main methods of Kafka's command-line tools, one after another in this one process, and
 * prints what each wrote and the code with which it would have ended.
 *
 * <p>It reads a JSON list of calls from the file that it is given. A call has the class of the tool
 * and its arguments; "until", a text for which it is made again and again; "learns", a pattern whose
 * group of what it wrote replaces {learned} in later calls; "typed", what it reads; "pause_ms" of waiting
 * after it.
 */
class KafkaTools {
    static final long UNTIL_MS = 20_000;
    static final long LONGEST_CALL_MS = 60_000;
    static final int NEVER_ENDED = 98;
    static final int THREW = 99;

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        PrintStream progress = System.err;
        ObjectMapper json = new ObjectMapper();
        List<Map<String, Object>> results = new ArrayList<>();
        String learned = "";
        for (Map<?, ?> call : json.readValue(new File(arguments[0]), Map[].class)) {
            List<String> words = new ArrayList<>();
            for (Object word : (List<?>) call.get("arguments")) {
                words.add(((String) word).replace("{learned}", learned));
            }
            long begin = System.currentTimeMillis();
            System.setIn(new ByteArrayInputStream(((String) call.get("typed")).getBytes(StandardCharsets.UTF_8)));
            Call done = untilIn((String) call.get("until"), (String) call.get("tool"), words.toArray(new String[0]));
            if (call.get("learns") != null) {
                Matcher found = Pattern.compile((String) call.get("learns")).matcher(done.text());
                learned = found.find() ? found.group(1) : "";
            }
            results.add(Map.of("code", done.code, "text", done.text()));
            progress.println((System.currentTimeMillis() - begin) + " ms " + call.get("tool") + " " + words);
            Thread.sleep(((Number) call.get("pause_ms")).longValue());
        }
        answers.println(json.writeValueAsString(results));
        answers.flush();
        Runtime.getRuntime().halt(0); // threads of clients that a tool did not close
    }

    static Call untilIn(String text, String tool, String[] arguments) throws Exception {
        long deadline = System.currentTimeMillis() + UNTIL_MS;
        Call call;
        do {
            call = new Call();
            call.make(tool, arguments);
        } while (text != null && !call.text().contains(text) && System.currentTimeMillis() < deadline);
        return call;
    }

    /** Thrown where a tool would have ended its process. */
    static class Ended extends Error {
        Ended() {
            super(null, null, false, false);
        }
    }

    /** One call, and what it wrote until it would have ended its process. */
    static class Call {
        private final ByteArrayOutputStream written = new ByteArrayOutputStream();
        private boolean hasEnded;
        int code;

        synchronized String text() {
            return written.toString();
        }

        private synchronized void end(int with) {
            if (!hasEnded) {
                hasEnded = true;
                code = with;
            }
        }

        private synchronized void keep(byte[] bytes, int from, int count) {
            if (!hasEnded) {
                written.write(bytes, from, count);
            }
        }

        void make(String tool, String[] arguments) throws Exception {
            PrintStream stream = new PrintStream(new OutputStream() {
                @Override
                public void write(int one) {
                    keep(new byte[] {(byte) one}, 0, 1);
                }

                @Override
                public void write(byte[] bytes, int from, int count) {
                    keep(bytes, from, count);
                }
            }, true);
            System.setOut(stream);
            System.setErr(stream);
            onExit();
            Thread thread = new Thread(() -> inScala(stream, () -> main(tool, arguments, stream)));
            thread.setDaemon(true);
            thread.start();
            thread.join(LONGEST_CALL_MS);
            end(thread.isAlive() ? NEVER_ENDED : 0);
        }

        /** Have what would end the process end this call instead. */
        private void onExit() throws Exception {
            Class<?> exit = exit();
            Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
            Object ends = Proxy.newProxyInstance(exit.getClassLoader(), new Class<?>[] {procedure}, (self, method, with) -> {
                end((Integer) with[0]);
                throw new Ended();
            });
            exit.getMethod("setExitProcedure", procedure).invoke(null, ends);
        }

        /** Return Kafka's class that ends a process, which has another package since 4.4. */
        private static Class<?> exit() throws ClassNotFoundException {
            try {
                return Class.forName("org.apache.kafka.common.utils.internals.Exit");
            } catch (ClassNotFoundException older) {
                return Class.forName("org.apache.kafka.common.utils.Exit");
            }
        }

        private void main(String tool, String[] arguments, PrintStream stream) {
            try {
                Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
            } catch (InvocationTargetException error) {
                if (!(error.getCause() instanceof Ended)) {
                    error.getCause().printStackTrace(stream); // as a process tells of it before it ends with 1
                    end(1);
                }
            } catch (ReflectiveOperationException error) {
                error.printStackTrace(stream);
                end(THREW);
            }
        }

        /** Scala keeps the console of each thread apart from System.out. */
        private static void inScala(PrintStream stream, Runnable body) {
            Console$.MODULE$.withOut((OutputStream) stream, new AbstractFunction0<Object>() {
                @Override
                public Object apply() {
                    return Console$.MODULE$.withErr((OutputStream) stream, new AbstractFunction0<Object>() {
                        @Override
                        public Object apply() {
                            body.run();
                            return null;
                        }
                    });
                }
            });
        }
    }
}
