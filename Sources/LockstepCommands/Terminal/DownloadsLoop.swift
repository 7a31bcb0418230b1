import LibC
import LockstepClient
import PodcastModel

/// Shows the downloads on a terminal, with progress bars, until none is active or `q` is pressed.
final class DownloadsLoop: TerminalUser {
    private var board = DownloadsBoard()
    private var block = LiveBlock(.ofTerminal)
    private let keyboard = Keyboard()
    private let events: TerminalEvents
    private var hasKeys = false

    init(_ events: TerminalEvents) { self.events = events }

    /// - Returns: the exit status: 0, or 128 and the number of the signal that ended it.
    /// - Throws: the failure that ended the connection.
    func run() throws -> Int32 {
        defer { suspend() }
        resume()
        while let batch = events.next(hasKeys: hasKeys) {
            for item in batch.news {
                switch item {
                case .update(let update): board = DownloadsBoard(update.state)
                case .finished, .library: break
                case .ended(let failure): throw failure ?? PlayerLoop.connectionEnded
                }
            }
            if let status = events.handle(batch.signals, for: self) { return status }
            if board.isCurrent {
                try draw()
                if !board.isActive { return 0 }
            }
            if batch.isHungUp { return 128 + SIGHUP }
            while hasKeys, let key = keyboard.next() {
                if key == .character("q") { return 0 }
            }
        }
        return 1
    }

    private func draw() throws {
        let size = TerminalLocale.size ?? (80, 24)
        // The last column stays empty: writing there wraps on some terminals.
        let lines = board.lines(columns: max(1, size.columns - 1), rows: max(1, size.rows - 1))
        try Output.write(block.show(lines, columns: size.columns), to: STDOUT_FILENO)
    }

    func suspend() {
        try? Output.write(block.leave(), to: STDOUT_FILENO)
        if hasKeys { keyboard.giveBack() }
        hasKeys = false
    }

    func resume() {
        block.forget()
        hasKeys = Keyboard.isOurs
        if hasKeys { keyboard.acquire() }
    }

    func resized() {}
}
