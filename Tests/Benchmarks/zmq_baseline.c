// Performs the two measured operations of the bus with bare libzmq: the same sockets and the same
// three frames (topic, 40-byte header, 200-byte payload), but no retained values, no ring and no generations.
//
//   zmq_baseline throughput [MESSAGES]   acknowledged publishing, window 256, one publisher, one subscriber
//   zmq_baseline pause N                 a command through the broker to a service, whose new state goes to N subscribers
//   zmq_baseline cold N                  the same, with 60 ms of idle time before each command
//
// Broker and service are separate processes, as in the fleet. Prints rows, one line of JSON each.
#include "measure.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

enum { HEADER = 40, PAYLOAD = 200, WINDOW = 256, DRAIN = 256, COLD_ROUNDS = 60, QUIET_US = 60000 };

static const char topic[] = "stream/playback/state";
static char folder[64], pub_end[96], svc_end[96], cli_end[96];
// State that the processes share in memory, beside their messages.
static struct {
    atomic_int subscribed, begun, stopping, bound;
} *shared;

static void *open_socket(void *context, int type) {
    void *socket = zmq_socket(context, type);
    CHECK(socket, "zmq_socket");
    int zero = 0;
    zmq_setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero);
    zmq_setsockopt(socket, ZMQ_SNDHWM, &zero, sizeof zero);  // no message may be dropped, because every one is counted
    zmq_setsockopt(socket, ZMQ_RCVHWM, &zero, sizeof zero);
    return socket;
}

static void connect_named(void *socket, const char *name, const char *endpoint) {
    zmq_setsockopt(socket, ZMQ_ROUTING_ID, name, strlen(name));
    CHECK(zmq_connect(socket, endpoint) == 0, endpoint);
}

static void put64(unsigned char *at, uint64_t value) {
    for (int i = 7; i >= 0; i--, value >>= 8) at[i] = (unsigned char)value;
}

static uint64_t get64(const unsigned char *at) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) value = value << 8 | at[i];
    return value;
}

// Receives the parts of one message. Returns their number; 0 if no message is waiting (with DONTWAIT).
static int receive(void *socket, zmq_msg_t *parts, int limit, int flags) {
    int count = 0, more = 1;
    while (more) {
        CHECK(count < limit, "too many parts");
        zmq_msg_init(&parts[count]);
        if (zmq_msg_recv(&parts[count], socket, count == 0 ? flags : 0) < 0) {
            CHECK(count == 0 && (errno == EAGAIN || errno == EINTR), "zmq_msg_recv");
            return 0;
        }
        more = zmq_msg_more(&parts[count++]);
    }
    return count;
}

static void send_parts(void *socket, zmq_msg_t *parts, int count) {
    for (int i = 0; i < count; i++)
        CHECK(zmq_msg_send(&parts[i], socket, i + 1 < count ? ZMQ_SNDMORE : 0) >= 0, "zmq_msg_send");
}

static void publish(void *socket, uint64_t origin) {
    unsigned char header[HEADER] = {1, 1};
    static const unsigned char payload[PAYLOAD];
    put64(header + 24, origin);
    CHECK(zmq_send(socket, topic, sizeof topic - 1, ZMQ_SNDMORE) >= 0, "zmq_send");
    CHECK(zmq_send(socket, header, HEADER, ZMQ_SNDMORE) >= 0, "zmq_send");
    CHECK(zmq_send(socket, payload, PAYLOAD, 0) >= 0, "zmq_send");
}

// The broker’s thread: numbers, forwards and acknowledges the events of services; routes requests and replies.
static void broker(void) {
    void *context = zmq_ctx_new();
    void *pub = open_socket(context, ZMQ_XPUB), *svc = open_socket(context, ZMQ_ROUTER),
         *cli = open_socket(context, ZMQ_ROUTER);
    int one = 1;
    zmq_setsockopt(pub, ZMQ_XPUB_VERBOSE, &one, sizeof one);
    CHECK(zmq_bind(pub, pub_end) == 0, pub_end);
    CHECK(zmq_bind(svc, svc_end) == 0, svc_end);
    CHECK(zmq_bind(cli, cli_end) == 0, cli_end);
    atomic_store(&shared->bound, 1);

    uint64_t sequence = 0;
    zmq_msg_t parts[8];
    zmq_pollitem_t items[3] = {{pub, 0, ZMQ_POLLIN, 0}, {svc, 0, ZMQ_POLLIN, 0}, {cli, 0, ZMQ_POLLIN, 0}};
    while (!atomic_load(&shared->stopping)) {
        if (zmq_poll(items, 3, 100) <= 0) continue;
        for (int n = 0, count; items[0].revents && n < DRAIN && (count = receive(pub, parts, 8, ZMQ_DONTWAIT)); n++) {
            const char *data = zmq_msg_data(&parts[0]);
            if (zmq_msg_size(&parts[0]) > 0 && data[0] == 1) atomic_fetch_add(&shared->subscribed, 1);
            while (count > 0) zmq_msg_close(&parts[--count]);
        }
        for (int n = 0, count; items[1].revents && n < DRAIN && (count = receive(svc, parts, 8, ZMQ_DONTWAIT)); n++) {
            if (count == 4) {  // identity, topic, header, payload: a publish
                unsigned char *header = zmq_msg_data(&parts[2]), acknowledgement[16];
                put64(header + 16, ++sequence);
                memcpy(acknowledgement, header + 24, 8);
                put64(acknowledgement + 8, sequence);
                send_parts(pub, parts + 1, 3);
                CHECK(zmq_msg_send(&parts[0], svc, ZMQ_SNDMORE) >= 0, "acknowledge");
                CHECK(zmq_send(svc, acknowledgement, sizeof acknowledgement, 0) >= 0, "acknowledge");
            } else {  // identity, client, reply
                send_parts(cli, parts + 1, 2);
                zmq_msg_close(&parts[0]);
            }
        }
        for (int n = 0, count; items[2].revents && n < DRAIN && (count = receive(cli, parts, 8, ZMQ_DONTWAIT)); n++) {
            CHECK(count == 2, "a request has two parts");  // client, request: for the one service
            CHECK(zmq_send(svc, "service", 7, ZMQ_SNDMORE) >= 0, "route");
            send_parts(svc, parts, 2);
        }
    }
    zmq_close(pub);
    zmq_close(svc);
    zmq_close(cli);
    zmq_ctx_term(context);
}

// Handles each command: publishes the new state, waits for the acknowledgement, and replies.
static void service(void) {
    while (!atomic_load(&shared->begun)) usleep(1000);
    void *context = zmq_ctx_new(), *dealer = open_socket(context, ZMQ_DEALER);
    int receive_timeout = 100;
    zmq_setsockopt(dealer, ZMQ_RCVTIMEO, &receive_timeout, sizeof receive_timeout);
    connect_named(dealer, "service", svc_end);
    publish(dealer, 0);  // this registers the service with the broker
    zmq_msg_t waiting[2], parts[2];
    uint64_t origin = 0;
    int replying = 0;
    while (!atomic_load(&shared->stopping)) {
        int count = receive(dealer, parts, 2, 0);
        if (count == 2) {
            waiting[0] = parts[0];
            waiting[1] = parts[1];
            replying = 1;
            publish(dealer, ++origin);
        } else if (count == 1) {
            if (replying) send_parts(dealer, waiting, 2);
            replying = 0;
            zmq_msg_close(&parts[0]);
        }
    }
    zmq_close(dealer);
    zmq_ctx_term(context);
}

// Runs a role in a child process, which ends with this process.
static pid_t begin(void (*role)(void)) {
    pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child > 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    role();
    _exit(0);
}

// Creates subscribers in the calling thread; returns when the broker has received every subscription.
static void **subscribe(void *context, int count) {
    void **sockets = calloc((size_t)count, sizeof *sockets);
    for (int i = 0; i < count; i++) {
        sockets[i] = open_socket(context, ZMQ_SUB);
        zmq_setsockopt(sockets[i], ZMQ_SUBSCRIBE, "stream/", 7);
        CHECK(zmq_connect(sockets[i], pub_end) == 0, pub_end);
    }
    static int expected;
    expected += count;
    while (atomic_load(&shared->subscribed) < expected) usleep(1000);
    return sockets;
}

// Returns the sequence number of a subscriber’s next event.
static uint64_t next_event(void *socket) {
    zmq_msg_t parts[3];
    int count = receive(socket, parts, 3, 0);
    CHECK(count == 3 && zmq_msg_size(&parts[1]) == HEADER, "an event has three parts");
    uint64_t sequence = get64((unsigned char *)zmq_msg_data(&parts[1]) + 16);
    while (count > 0) zmq_msg_close(&parts[--count]);
    return sequence;
}

static void *publisher(void *argument) {
    uint64_t total = *(uint64_t *)argument, sent = 0, acknowledged = 0;
    void *context = zmq_ctx_new(), *dealer = open_socket(context, ZMQ_DEALER);
    // Each round has another name, because the broker may not have detected the end of the last one yet.
    static int round;
    char name[32];
    snprintf(name, sizeof name, "publisher%d", ++round);
    connect_named(dealer, name, svc_end);
    while (acknowledged < total) {
        while (sent < total && sent - acknowledged < WINDOW) publish(dealer, ++sent);
        unsigned char answer[16];
        int flags = 0;
        while (zmq_recv(dealer, answer, sizeof answer, flags) == sizeof answer) {
            acknowledged = get64(answer);
            flags = ZMQ_DONTWAIT;
        }
    }
    zmq_close(dealer);
    zmq_ctx_term(context);
    return NULL;
}

// Returns the messages per second of one round; the broker’s sequence continues from the last round.
static double throughput_round(uint64_t total) {
    static uint64_t before;
    void *context = zmq_ctx_new(), **subscriber = subscribe(context, 1);
    pthread_t thread;
    double start = now_us();
    CHECK(pthread_create(&thread, NULL, publisher, &total) == 0, "pthread_create");
    for (uint64_t expected = before + 1; expected <= before + total; expected++)
        CHECK(next_event(subscriber[0]) == expected, "an event is missing");
    before += total;
    pthread_join(thread, NULL);
    double rate = (double)total / (now_us() - start) * 1e6;
    zmq_close(subscriber[0]);
    free(subscriber);
    zmq_ctx_term(context);
    return rate;
}

static void measure_throughput(uint64_t total) {
    double rates[5];
    for (int round = 0; round < 5; round++) rates[round] = throughput_round(total);
    row("libzmq.throughput", percentile(rates, 5, 50), "messages/s");
}

static void measure_pause(int observers, int rounds, useconds_t quiet) {
    void *context = zmq_ctx_new();
    zmq_ctx_set(context, ZMQ_MAX_SOCKETS, observers + 64);
    void **subscribers = subscribe(context, observers), *client = open_socket(context, ZMQ_DEALER);
    connect_named(client, "client", cli_end);
    atomic_store(&shared->begun, 1);
    for (int i = 0; i < observers; i++) next_event(subscribers[i]);  // the service’s first event

    double *samples = calloc((size_t)rounds, sizeof *samples);
    int warm_up = rounds / 10 + 1;
    for (int round = -warm_up; round < rounds; round++) {
        if (quiet) usleep(quiet);
        double start = now_us();
        CHECK(zmq_send(client, "pause", 5, 0) == 5, "zmq_send");
        for (int i = 0; i < observers; i++) next_event(subscribers[i]);
        if (round >= 0) samples[round] = now_us() - start;
        char reply[16];
        CHECK(zmq_recv(client, reply, sizeof reply, 0) > 0, "the reply");
    }
    char name[64];
    snprintf(name, sizeof name, "libzmq.pause.%sn%d", quiet ? "cold." : "", observers);
    row(name, percentile(samples, rounds, 50), "us");
    free(samples);
    for (int i = 0; i < observers; i++) zmq_close(subscribers[i]);
    free(subscribers);
    zmq_close(client);
    zmq_ctx_term(context);
}

int main(int argc, char **argv) {
    int throughput = argc >= 2 && strcmp(argv[1], "throughput") == 0;
    int cold = argc >= 2 && strcmp(argv[1], "cold") == 0;
    int observers = argc >= 3 && (cold || strcmp(argv[1], "pause") == 0) ? atoi(argv[2]) : 0;
    if (!throughput && observers < 1) {
        fprintf(stderr, "usage: zmq_baseline throughput [MESSAGES] | pause N | cold N\n");
        return 64;
    }
    raise_descriptor_limit();
    snprintf(folder, sizeof folder, "/tmp/zmq-baseline.XXXXXX");
    CHECK(mkdtemp(folder), folder);
    snprintf(pub_end, sizeof pub_end, "ipc://%s/pub.sock", folder);
    snprintf(svc_end, sizeof svc_end, "ipc://%s/svc.sock", folder);
    snprintf(cli_end, sizeof cli_end, "ipc://%s/cli.sock", folder);

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED, "mmap");
    pid_t children[2] = {begin(broker), throughput ? 0 : begin(service)};
    while (!atomic_load(&shared->bound)) usleep(1000);
    if (throughput) {
        measure_throughput(argc >= 3 ? strtoull(argv[2], NULL, 10) : 200000);
    } else {
        int rounds = cold ? COLD_ROUNDS : observers >= 1000 ? 100 : observers >= 100 ? 500 : 2000;
        measure_pause(observers, rounds, cold ? QUIET_US : 0);
    }
    atomic_store(&shared->stopping, 1);
    for (int i = 0; i < 2; i++)
        if (children[i] > 0) waitpid(children[i], NULL, 0);
    unlink(pub_end + 6);
    unlink(svc_end + 6);
    unlink(cli_end + 6);
    rmdir(folder);
    return 0;
}
