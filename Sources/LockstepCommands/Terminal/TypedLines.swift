import Dispatch
import LibC

/// The request of a typed line.
enum TypedKey: Sendable, Hashable {
    case key(PlayerKey)
    case other(String)

    /// Fails for an empty line.
    init?(_ line: String) {
        let text = line.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        if let character = text.first, text.count == 1 {
            self = .key(.character(character))
        } else if text.isEmpty {
            guard line.contains(" ") else { return nil }
            self = .key(.character(" "))
        } else {
            var sequence = KeySequence()
            let keys = text.utf8.compactMap { sequence.handle($0) }
            self = text.first == "\u{1b}" && keys.count == 1 ? .key(keys[0]) : .other(text)
        }
    }
}

/// The lines of standard input, for players without a screen.
enum TypedLines {
    /// Whether lines may arrive: from a terminal, a pipe, a socket or a file, but not from `/dev/null`.
    static var isPossible: Bool {
        if isTerminal { return true }
        var status = stat()
        guard fstat(STDIN_FILENO, &status) == 0 else { return false }
        return [S_IFIFO, S_IFSOCK, S_IFREG].contains(status.st_mode & S_IFMT)
    }

    static var isTerminal: Bool { isatty(STDIN_FILENO) == 1 }

    /// Whether reading doesn’t stop this program, as reading from a terminal in the background would.
    private static var isForeground: Bool { !isTerminal || tcgetpgrp(STDIN_FILENO) == getpgrp() }

    /// The lines until the end of the input. It isn’t read while another program is in the foreground.
    static func stream() -> AsyncStream<String> {
        AsyncStream { continuation in
            let wake = WakePipe()
            continuation.onTermination = { _ in wake.wake() }
            // A separate thread is needed, because tasks must not block their threads.
            DispatchQueue(label: "lockstep.typed").async {
                read(until: wake.descriptor) { continuation.yield($0) }
                continuation.onTermination = nil
                continuation.finish()
                wake.close()
            }
        }
    }

    private static func read(until wake: Int32, _ line: (String) -> Void) {
        var rest: [UInt8] = []
        while true {
            let isForeground = isForeground
            var waiting = [
                pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
                pollfd(fd: isForeground ? STDIN_FILENO : -1, events: Int16(POLLIN), revents: 0),
            ]
            if poll(&waiting, nfds_t(waiting.count), isForeground ? -1 : 1_000) < 0, errno != EINTR { return }
            if waiting[0].revents != 0 { return }
            // The program may have been moved to the background while it waited.
            guard waiting[1].revents != 0, Self.isForeground else { continue }
            var bytes = [UInt8](repeating: 0, count: 4_096)
            let count = LibC.read(STDIN_FILENO, &bytes, bytes.count)
            guard count > 0 else {
                if count < 0, errno == EINTR || errno == EAGAIN { continue }
                // The last line may have no line break.
                if !rest.isEmpty { line(String(decoding: rest, as: UTF8.self)) }
                return
            }
            rest += bytes[..<count]
            var lines = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            rest = Array(lines.removeLast().prefix(4_096))
            for text in lines { line(String(decoding: text, as: UTF8.self)) }
        }
    }
}
