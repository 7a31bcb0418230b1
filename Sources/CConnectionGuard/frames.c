#include "CConnectionGuard.h"

// The size of the greeting, the flags of a frame, and libzmq’s overhead for a frame.
enum { GREETING = 64, MORE = 1, LARGE = 2, COMMAND = 4, FRAME_COST = 64 };

// The lengths of the names SUBSCRIBE and CANCEL; no other command of ZMTP 3 has a name of one of these lengths.
enum { SUBSCRIBE = 9, CANCEL = 6 };

// The signature begins with 0xff, ends with 0x7f, and is followed by the major version (rfc.zeromq.org/spec/23).
static int greeting_is_wrong(struct lockstep_frames *f, uint8_t byte) {
    switch (f->greeting) {
    case 0: return byte != 0xff;
    case 9: return byte != 0x7f;
    case 10: return byte < 3;
    default: return 0;
    }
}

static void end_frame(struct lockstep_frames *f) {
    if (f->has_more) return;
    f->frames = 0;
    f->total = 0;
    f->bytes = 0;
}

static int count_subscription(struct lockstep_frames *f, uint64_t bytes) {
    if (!f->is_publisher) return 0;
    f->subscriptions++;
    f->subscription_bytes += (uint32_t)bytes;
    return f->subscriptions > LOCKSTEP_SUBSCRIPTIONS || f->subscription_bytes > LOCKSTEP_SUBSCRIPTION_BYTES ? -1 : 0;
}

static int begin_frame(struct lockstep_frames *f) {
    uint8_t flags = f->header[0];
    uint64_t length = 0;
    if (flags & LARGE) {
        for (int i = 1; i <= 8; i++) length = length << 8 | f->header[i];
    } else {
        length = f->header[1];
    }
    f->have = 0;
    if (length > LOCKSTEP_MESSAGE_BYTES) return -1;
    f->left = length;
    if (flags & COMMAND) {
        // A command may arrive between messages or between the frames of one; libzmq doesn’t keep it.
        f->is_command = 1;
        f->is_at_name = 1;
        return 0;
    }
    f->is_command = 0;
    f->is_at_name = 0;
    f->has_more = flags & MORE;
    f->frames++;
    f->total += length;
    f->bytes += FRAME_COST;
    if (f->frames > LOCKSTEP_MESSAGE_FRAMES || f->total > LOCKSTEP_MESSAGE_BYTES) return -1;
    if (length == 0) end_frame(f);
    return count_subscription(f, length);
}

int lockstep_frames_read(struct lockstep_frames *f, const uint8_t *bytes, size_t count) {
    while (count > 0) {
        if (f->greeting < GREETING) {
            if (greeting_is_wrong(f, *bytes)) return -1;
            f->greeting++;
            bytes++;
            count--;
        } else if (f->left > 0) {
            if (f->is_at_name) {
                f->is_at_name = 0;
                if ((*bytes == SUBSCRIBE || *bytes == CANCEL) && count_subscription(f, f->left) < 0) return -1;
            }
            size_t taken = f->left < count ? (size_t)f->left : count;
            f->left -= taken;
            bytes += taken;
            count -= taken;
            if (f->is_command) continue;
            f->bytes += taken;
            if (f->left == 0) end_frame(f);
        } else {
            f->header[f->have++] = *bytes++;
            count--;
            int size = f->header[0] & LARGE ? 9 : 2;
            if (f->have == size && begin_frame(f) < 0) return -1;
        }
    }
    return 0;
}
