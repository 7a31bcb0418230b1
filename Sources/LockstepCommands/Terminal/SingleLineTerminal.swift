import LibC
import LockstepClient
import PodcastModel

/// A player on one line, below the terminal’s existing content.
final class SingleLineTerminal: PlayerTerminal {
    private var line: LiveBlock
    private let keyboard = Keyboard()
    private var isClosed = false
    /// The number of the last shown notice.
    private var lastShownNotice = 0

    /// Takes over the terminal of standard input and output.
    init() {
        TerminalLocale.set()
        line = LiveBlock(.ofTerminal)
        keyboard.acquire()
    }

    func draw(_ screen: PlayerScreen) {
        let columns = TerminalLocale.size?.columns ?? 80
        // The last column stays empty: writing there wraps on some terminals.
        let room = max(1, columns - 1)
        let text = SingleLineText.text(screen.snapshot, columns: room, notice: screen.notice)
        // A notice that is longer than the line is printed above it.
        let isNew = screen.noticeNumber != lastShownNotice && DisplayText.width(screen.notice ?? "") > room
        let above = isNew ? DisplayText.wrapped(screen.notice ?? "", to: room) : []
        lastShownNotice = screen.noticeNumber
        try? Output.write(line.show([text], above: above, columns: columns), to: STDOUT_FILENO)
    }

    func nextKey() -> PlayerKey? { keyboard.next() }

    func suspend() {
        try? Output.write(line.leave(), to: STDOUT_FILENO)
        keyboard.giveBack()
    }

    func resume() {
        keyboard.acquire()
        line.forget()
    }

    func resized() {}

    func close() {
        guard !isClosed else { return }
        isClosed = true
        suspend()
    }
}
