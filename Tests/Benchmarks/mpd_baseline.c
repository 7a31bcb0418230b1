// Measures a change of state with MPD: N clients wait in `idle player`, another one pauses or resumes, and each is
// notified and requests `status`. The time is from the command to the last complete status.
//
//   mpd_baseline SOCKET N [ROUNDS]       SOCKET is MPD’s Unix socket; its queue must have a track (see mpd_serve)
//
// Prints a row, one line of JSON.
#include "measure.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BUFFER_SIZE = 8192, TIMEOUT_MS = 20000 };

struct connection {
    int descriptor;
    int asked;  // `status` was sent, and its response is pending
    int done;   // the status of this round has arrived
    int length;
    char text[BUFFER_SIZE];
};

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CHECK(strlen(path) < sizeof address.sun_path, path);
    strcpy(address.sun_path, path);
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(descriptor >= 0 && connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0, path);
    return descriptor;
}

static void send_line(struct connection *c, const char *line) {
    size_t length = strlen(line);
    c->length = 0;
    CHECK(write(c->descriptor, line, length) == (ssize_t)length, "write");
}

// Reads the available bytes. Returns whether a response is complete: its last line, or the greeting, begins with OK.
static int complete(struct connection *c) {
    ssize_t got = read(c->descriptor, c->text + c->length, (size_t)(BUFFER_SIZE - 1 - c->length));
    CHECK(got > 0, "MPD closed the connection");
    c->length += (int)got;
    c->text[c->length] = 0;
    CHECK(strncmp(c->text, "ACK", 3) != 0, c->text);
    return c->length >= 3 && c->text[c->length - 1] == '\n' &&
           (strncmp(c->text, "OK", 2) == 0 || strstr(c->text, "\nOK\n") != NULL);
}

static void await_response(struct connection *c, const char *line) {
    if (line) send_line(c, line);
    while (!complete(c)) {}
}

// Returns the microseconds from sending `command` until all N clients have received `state`.
static double round_trip(struct connection *control, struct connection *clients, struct pollfd *items, int count,
                         const char *command, const char *state) {
    for (int i = 0; i < count; i++) clients[i].done = 0;
    double start = now_us(), end = start;
    send_line(control, command);
    for (int remaining = count; remaining > 0;) {
        CHECK(poll(items, (nfds_t)count, TIMEOUT_MS) > 0, "MPD told nobody of the change");
        for (int i = 0; i < count; i++) {
            struct connection *c = &clients[i];
            if (!(items[i].revents & POLLIN) || !complete(c)) continue;
            if (!c->asked) {
                send_line(c, "status\n");
                c->asked = 1;
                continue;
            }
            if (!c->done && strstr(c->text, state)) {
                c->done = 1;
                remaining--;
                end = now_us();
            }
            send_line(c, "idle player\n");
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
        clients[i].descriptor = connect_to(argv[1]);
        await_response(&clients[i], NULL);  // the greeting
    }
    await_response(control, "play\n");
    usleep(300000);  // opening the output changes the state, too, which must not be measured
    for (int i = 0; i < count; i++) {
        items[i] = (struct pollfd){.fd = clients[i].descriptor, .events = POLLIN};
        send_line(&clients[i], "idle player\n");
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
