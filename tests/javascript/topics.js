// kafkajs creates a topic, sees it, is refused another one, and deletes it. The argument is JSON:
// address, topic, forbidden, ca, and either cert and key or user and password. What it was refused
// with is printed.
const fs = require("fs");
const { Kafka, logLevel } = require("kafkajs");

async function main(wanted) {
  const ssl = { ca: [fs.readFileSync(wanted.ca)] };
  if (wanted.cert) Object.assign(ssl, { cert: fs.readFileSync(wanted.cert), key: fs.readFileSync(wanted.cert) });
  const login = wanted.user && { mechanism: "scram-sha-512", username: wanted.user, password: wanted.password };
  const kafka = new Kafka({ brokers: [wanted.address], ssl, sasl: login || undefined, logLevel: logLevel.NOTHING, retry: { retries: 2 } });
  const admin = kafka.admin();
  await admin.connect();
  const topic = (name) => ({ topics: [{ topic: name, numPartitions: 2, replicationFactor: 3 }] });
  await admin.createTopics(topic(wanted.topic));
  while (!(await admin.listTopics()).includes(wanted.topic));
  await admin.createTopics(topic(wanted.forbidden)).then(
    () => console.log("nothing was refused"),
    (error) => console.log([error.message, ...(error.errors || [])].join(" ")),
  );
  await admin.deleteTopics({ topics: [wanted.topic] });
  await admin.disconnect();
}

main(JSON.parse(process.argv[2])).catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
