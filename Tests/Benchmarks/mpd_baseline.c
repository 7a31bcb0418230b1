// What a change of state costs with MPD: N clients wait in `idle player`; one more pauses or resumes; each of the N is
// told that something changed and asks for `status`. Measured from the command to the last complete status.
//
//   mpd_baseline SOCKET N [ROUNDS]       SOCKET is MPD's Unix socket, with something in its queue (mpd_serve does that)
//
// Prints a row, one line of JSON.
#include "measure.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ROOM = 8192, PATIENCE_MS = 20000 };

struct connection {
    int descriptor;
    int asked;  // `status` was sent, its answer is awaited
    int done;   // has the status of this round
    int length;
    char text[ROOM];
};

static int dial(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CHECK(strlen(path) < sizeof address.sun_path, path);
    strcpy(address.sun_path, path);
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(descriptor >= 0 && connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0, path);
    return descriptor;
}

static void say(struct connection *c, const char *line) {
    size_t length = strlen(line);
    c->length = 0;
    CHECK(write(c->descriptor, line, length) == (ssize_t)length, "write");
}

// Takes in what has arrived; whether an answer is complete (its last line is OK; the greeting begins with it).
static int complete(struct connection *c) {
    ssize_t got = read(c->descriptor, c->text + c->length, (size_t)(ROOM - 1 - c->length));
    CHECK(got > 0, "MPD hung up");
    c->length += (int)got;
    c->text[c->length] = 0;
    CHECK(strncmp(c->text, "ACK", 3) != 0, c->text);
    return c->length >= 3 && c->text[c->length - 1] == '\n' &&
           (strncmp(c->text, "OK", 2) == 0 || strstr(c->text, "\nOK\n") != NULL);
}

static void converse(struct connection *c, const char *line) {
    if (line) say(c, line);
    while (!complete(c)) {}
}

// One round: `command`, then all N know `state`. Microseconds.
static double round_trip(struct connection *control, struct connection *clients, struct pollfd *items, int count,
                         const char *command, const char *state) {
    for (int i = 0; i < count; i++) clients[i].done = 0;
    double start = now_us(), end = start;
    say(control, command);
    for (int remaining = count; remaining > 0;) {
        CHECK(poll(items, (nfds_t)count, PATIENCE_MS) > 0, "MPD told nobody of the change");
        for (int i = 0; i < count; i++) {
            struct connection *c = &clients[i];
            if (!(items[i].revents & POLLIN) || !complete(c)) continue;
            if (!c->asked) {
                say(c, "status\n");
                c->asked = 1;
                continue;
            }
            if (!c->done && strstr(c->text, state)) {
                c->done = 1;
                remaining--;
                end = now_us();
            }
            say(c, "idle player\n");
            c->asked = 0;
        }
    }
    while (!complete(control)) {}
    return end - start;
}

int main(int argc, char **argv) {
    int count = argc >= 3 ? atoi(argv[2]) : 0;
    int rounds = argc >= 4 ? atoi(argv[3]) : count >= 1000 ? 50 : 300;
    if (count < 1 || rounds < 1) {
        fprintf(stderr, "usage: mpd_baseline SOCKET N [ROUNDS]\n");
        return 64;
    }
    raise_descriptor_limit();
    struct connection *clients = calloc((size_t)count + 1, sizeof *clients), *control = &clients[count];
    struct pollfd *items = calloc((size_t)count, sizeof *items);
    for (int i = 0; i <= count; i++) {
        clients[i].descriptor = dial(argv[1]);
        converse(&clients[i], NULL);  // the greeting
    }
    converse(control, "play\n");
    usleep(300000);  // the output opens; what that changes is not what is measured
    for (int i = 0; i < count; i++) {
        items[i] = (struct pollfd){.fd = clients[i].descriptor, .events = POLLIN};
        say(&clients[i], "idle player\n");
    }
    double *samples = calloc((size_t)rounds, sizeof *samples);
    for (int round = -3; round < rounds; round++) {
        int pause = round & 1;
        double took = round_trip(control, clients, items, count, pause ? "pause 1\n" : "pause 0\n",
                                 pause ? "state: pause" : "state: play");
        if (round >= 0) samples[round] = took;
    }
    char name[64];
    snprintf(name, sizeof name, "mpd.pause.n%d", count);
    row(name, percentile(samples, rounds, 50), "us");
    for (int i = 0; i <= count; i++) close(clients[i].descriptor);
    free(samples);
    free(items);
    free(clients);
    return 0;
}
