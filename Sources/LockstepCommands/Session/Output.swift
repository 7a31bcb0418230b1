import LibC
import LockstepClient
import PodcastModel

struct Output: Sendable {
    /// Standard output was closed by its reader; the program exits silently.
    struct Closed: Error {}

    let json: Bool
    /// Whether to omit confirmations and progress. What a command lists or was asked for is printed.
    let quiet: Bool
    var advice = AdvisedCommands.plain
    /// The memory of the last printed list of episodes; nil if none is kept.
    var listed: ListedEpisodes?

    /// - Throws: `Closed` if standard output’s reader has closed it.
    func line(_ text: String) throws {
        try Self.write((json ? text : advice.completed(text)) + "\n", to: STDOUT_FILENO)
    }

    /// Prints the value with `--json`, else the lines.
    func value(_ json: @autoclosure () -> JSONValue, lines: @autoclosure () -> [String]) throws {
        if self.json {
            try line(json().line)
        } else {
            for text in lines() { try line(text) }
        }
    }

    /// Prints a list of episodes, and remembers its rows: `%3` names the third one in the next command.
    func list(
        _ episodes: [EpisodeID], _ json: @autoclosure () -> JSONValue, lines: @autoclosure () -> [String]
    ) throws {
        if !self.json { listed?.remember(episodes) }
        try value(json(), lines: lines())
    }

    /// Prints the effect of a command, or why there was none: nothing with `-q`, the value with `--json`.
    func change(
        _ json: @autoclosure () -> JSONValue, if changed: Bool = true, _ sentence: @autoclosure () -> String,
        else reason: @autoclosure () -> String = ""
    ) throws {
        guard !quiet else { return }
        try value(json(), lines: [changed ? sentence() : "No change: \(reason())."])
    }

    /// Prints progress on standard error: nothing with `-q` or `--json`.
    func progress(_ text: String) {
        guard !quiet, !json else { return }
        try? Self.write("lockstep: \(advice.completed(text))\n", to: STDERR_FILENO)
    }

    /// Runs `body`; after a second, standard error shows on a terminal that it is running, and for how long.
    func whileWaiting<Result: Sendable>(
        _ what: String, _ body: @Sendable () async throws -> Result
    ) async throws -> Result {
        guard !quiet, !json, isatty(STDERR_FILENO) == 1 else { return try await body() }
        let line = "\r\(what)… "
        let progress = Task {
            let begun = SystemClocks.now().monotonic
            while true {
                do { try await Task.sleep(for: .seconds(1)) } catch { return begun }
                let seconds = Int(SystemClocks.now().monotonic.since(begun) / .seconds(1))
                try? Self.write("\(line)\(seconds) s", to: STDERR_FILENO)
            }
        }
        let result: Swift.Result<Result, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        progress.cancel()
        // The progress line is cleared if it was written.
        if SystemClocks.now().monotonic.since(await progress.value) >= .seconds(1) {
            let blank = String(repeating: " ", count: DisplayText.width(what) + 10)
            try? Self.write("\r\(blank)\r", to: STDERR_FILENO)
        }
        return try result.get()
    }

    /// Writes an error to standard error: a sentence, or with `--json` the documented object.
    static func report(_ failure: Failure, json: Bool) {
        if json {
            try? write(failure.json.line + "\n", to: STDERR_FILENO)
            return
        }
        // Each problem is on its own line.
        var text = failure.message.split(separator: "\n").map { "lockstep: \($0)\n" }.joined()
        let width = terminalWidth(of: STDERR_FILENO)
        for line in candidateLines(of: failure, width: width) { text += "  \(line)\n" }
        try? write(text, to: STDERR_FILENO)
    }

    /// The candidates of an ambiguous name; in a terminal in columns that fit.
    static func candidateLines(of failure: Failure, width: Int?) -> [String] {
        // The feeds of a web page are candidates as commands.
        guard failure.known != .notAFeed else {
            return failure.candidates.map { feed in
                "lockstep subscribe \(ShellText.quoted(feed.id))" + (feed.title.isEmpty ? "" : "   # \(feed.title)")
            }
        }
        guard let width else {
            return failure.candidates.map { candidate in
                "\(candidate.id)  \(candidate.title)" + (candidate.detail.isEmpty ? "" : " (\(candidate.detail))")
            }
        }
        let rows = failure.candidates.map { [$0.id, $0.title, $0.detail] }
        return Array(TextTable([.id(""), .flexible(""), ""], rows).printed(width: width - 2).dropFirst())
    }

    /// Writes a warning to standard error: a sentence, or with `--json` the documented object.
    static func warn(_ message: String, json: Bool) {
        let line =
            json
            ? JSONValue.object([
                "warning": .object([
                    "code": .string(FailureCode.badConfiguration.rawValue), "message": .string(message),
                ])
            ]).line : "lockstep: warning: \(DisplayText.sanitised(message))"
        try? write(line + "\n", to: STDERR_FILENO)
    }

    /// - Throws: `Closed` if the reader has closed it; `diskFull` or `storageFailed` if a file can’t be written.
    static func write(_ text: String, to descriptor: Int32) throws {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { LibC.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                bytes = bytes.dropFirst(count)
            } else if errno == EAGAIN {
                var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&waiting, 1, -1)
            } else if errno == EPIPE || errno == EIO {
                // The pipe has no reader, or the terminal was closed.
                throw Closed()
            } else if errno != EINTR {
                let reason = SystemError.reason()
                throw Failure(
                    errno == ENOSPC ? .diskFull : .storageFailed, "Couldn’t write the output: \(reason).")
            }
        }
    }

    /// The width of standard output’s terminal in columns; nil if it isn’t one.
    static var terminalWidth: Int? { terminalWidth(of: STDOUT_FILENO) }

    static func terminalWidth(of descriptor: Int32) -> Int? {
        var size = winsize()
        guard isatty(descriptor) == 1, ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
            return nil
        }
        return Int(size.ws_col)
    }
}
