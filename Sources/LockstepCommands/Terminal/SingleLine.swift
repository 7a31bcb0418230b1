import LibC
import LockstepClient
import PodcastModel

/// One live line at the bottom of what is in the terminal already.
final class SingleLine: PlayerTerminal {
    private var line: LiveBlock
    private let keyboard = Keyboard()
    private var isClosed = false
    /// The notice that was told last.
    private var told = 0

    /// Takes the terminal of standard input and output.
    init() {
        TerminalLocale.set()
        line = LiveBlock(.ofTerminal)
        keyboard.take()
    }

    var size: (columns: Int, rows: Int) { TerminalLocale.size ?? (80, 24) }

    func draw(_ content: PlayerContent) {
        let columns = size.columns
        // The last column stays empty: writing there wraps on some terminals.
        let room = max(1, columns - 1)
        let screen = content.screen
        let text = MiniLine.text(screen.snapshot, columns: room, notice: screen.notice)
        // What is longer than the line is said above it, where it stays.
        let isNew = screen.noticeNumber != told && DisplayText.width(screen.notice ?? "") > room
        let above = isNew ? DisplayText.wrapped(screen.notice ?? "", to: room) : []
        told = screen.noticeNumber
        try? Output.write(line.show([text], above: above, columns: columns), to: STDOUT_FILENO)
    }

    func nextKey() -> PlayerKey? { keyboard.next() }

    func suspend() {
        try? Output.write(line.leave(), to: STDOUT_FILENO)
        keyboard.giveBack()
    }

    func resume() {
        keyboard.take()
        line.forget()
    }

    func resized() {}

    func close() {
        guard !isClosed else { return }
        isClosed = true
        suspend()
    }
}
