// kafkajs creates a topic, sees it, is refused another one, and deletes it. The argument is JSON:
// address, topic, forbidden, perhaps ca, and either cert or user, password and mechanism. What it was
// refused with is printed. With a group it also produces records, with transactions as well, and
// consumes them.
const fs = require("fs");
const { Kafka, logLevel } = require("kafkajs");

const RECORDS = 40;
const PATIENCE_MS = 15000;

async function main(wanted) {
  const ssl = wanted.ca ? { ca: [fs.readFileSync(wanted.ca)] } : undefined;
  if (wanted.cert) Object.assign(ssl, { cert: fs.readFileSync(wanted.cert), key: fs.readFileSync(wanted.cert) });
  const login = wanted.user && { mechanism: wanted.mechanism || "scram-sha-512", username: wanted.user, password: wanted.password };
  const kafka = new Kafka({ brokers: [wanted.address], ssl, sasl: login || undefined, logLevel: logLevel.NOTHING, retry: { retries: 2 } });
  const admin = kafka.admin();
  await admin.connect();
  const topic = (name) => ({ topics: [{ topic: name, numPartitions: 2, replicationFactor: wanted.replicas || 3 }] });
  await admin.createTopics(topic(wanted.topic));
  while (!(await admin.listTopics()).includes(wanted.topic));
  await admin.createTopics(topic(wanted.forbidden)).then(
    () => console.log("refused = nothing"),
    (error) => console.log("refused =", [error.message, ...(error.errors || [])].join(" ")),
  );
  if (wanted.group) {
    await produce(kafka, wanted);
    await consume(kafka, wanted);
  }
  await admin.deleteTopics({ topics: [wanted.topic] });
  await admin.disconnect();
}

// Sends the records in a transaction that is aborted, and in one that is committed.
async function produce(kafka, wanted) {
  const producer = kafka.producer({ transactionalId: wanted.group, maxInFlightRequests: 1, idempotent: true });
  await producer.connect();
  for (const commits of [false, true]) {
    const transaction = await producer.transaction();
    const messages = [...Array(RECORDS).keys()].map((number) => ({ value: `${commits} ${number}` }));
    await transaction.send({ topic: wanted.topic, messages });
    await (commits ? transaction.commit() : transaction.abort());
  }
  await producer.disconnect();
  console.log("produce = done");
}

// Reads what was committed, in a group; again where a consumer was given nothing: the broker that it
// asked first may not have known the topic yet, and this client does not ask again for minutes.
async function consume(kafka, wanted) {
  const seen = new Set();
  for (let tries = 0; tries < 6 && seen.size < RECORDS; tries++) await consumeOnce(kafka, wanted, seen);
  console.log("consume =", seen.size);
}

async function consumeOnce(kafka, wanted, seen) {
  const consumer = kafka.consumer({ groupId: wanted.group });
  await consumer.connect();
  await consumer.subscribe({ topics: [wanted.topic], fromBeginning: true });
  await new Promise((resolve, reject) => {
    setTimeout(resolve, PATIENCE_MS).unref();
    consumer.on(consumer.events.CRASH, (event) => reject(event.payload.error));
    const eachMessage = async ({ message }) => void (seen.add(String(message.value)).size >= RECORDS && resolve());
    consumer.run({ eachMessage }).catch(reject);
  });
  await consumer.disconnect();
}

main(JSON.parse(process.argv[2])).catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
