import CNcurses
import LibC
import PodcastModel

/// A terminal with a player on it: on the whole screen, or on one line.
protocol PlayerTerminal: TerminalUser {
    func draw(_ screen: PlayerScreen)
    /// Returns the next waiting key; nil if there is none.
    func nextKey() -> PlayerKey?
    /// Restores the terminal permanently; a second call has no effect.
    func close()
}

/// The whole screen, drawn with ncurses, which writes only changes.
final class FullScreenTerminal: PlayerTerminal {
    private let screen: OpaquePointer
    private let window: UnsafeMutablePointer<WINDOW>
    private let files: (input: UnsafeMutablePointer<FILE>, output: UnsafeMutablePointer<FILE>)
    private var saved = termios()
    private var isClosed = false
    private var sequence = KeySequence()
    /// The indices of the list’s rows by the lines that show them.
    private var listRows: [Int: Int] = [:]

    /// Takes over the terminal of standard input and output.
    ///
    /// - Parameter hasMouse: whether clicks and the wheel are keys; otherwise the terminal handles them.
    /// - Throws: `badConfiguration` if the terminal is unknown.
    init(hasMouse: Bool) throws(Failure) {
        TerminalLocale.set()
        tcgetattr(STDIN_FILENO, &saved)
        guard let input = fdopen(dup(STDIN_FILENO), "r"), let output = fdopen(dup(STDOUT_FILENO), "w") else {
            throw Failure(.badConfiguration, "Couldn’t open the terminal. Try --plain.")
        }
        files = (input, output)
        set_escdelay(25)
        guard let screen = newterm(nil, output, input) else {
            throw Failure(
                .badConfiguration, "The terminal type “\(TerminalLocale.name)” is unknown. Set TERM, or try --plain.")
        }
        self.screen = screen
        cbreak()
        noecho()
        nonl()
        guard let window = newwin(0, 0, 0, 0) else {
            endwin()
            throw Failure(.badConfiguration, "The terminal is too small. Try `lockstep mini` or --plain.")
        }
        self.window = window
        keypad(window, true)
        nodelay(window, true)
        if hasMouse {
            // Presses are reported at once, without waiting for a double click.
            mouseinterval(0)
            mousemask(lockstep_mouse_press | lockstep_mouse_wheel_up | lockstep_mouse_wheel_down, nil)
        }
    }

    func draw(_ player: PlayerScreen) {
        let (columns, rows) = (Int(max(1, getmaxx(window))), Int(max(1, getmaxy(window))))
        let image = player.image(columns: columns, rows: rows)
        listRows = image.listRows
        werase(window)
        for (row, spans) in image.lines.prefix(rows).enumerated() {
            wmove(window, Int32(row), 0)
            for span in spans {
                wattr_set(window, Self.attributes(span.style), 0, nil)
                waddnstr(window, span.text, -1)
            }
        }
        wattr_set(window, lockstep_attribute_normal, 0, nil)
        if let cursor = image.cursor, cursor.row < rows {
            wmove(window, Int32(cursor.row), Int32(cursor.column))
            curs_set(1)
        } else {
            curs_set(0)
        }
        wrefresh(window)
    }

    private static func attributes(_ style: ScreenImage.Style) -> attr_t {
        switch style {
        case .plain: lockstep_attribute_normal
        case .bold: lockstep_attribute_bold
        case .dim: lockstep_attribute_dim
        case .selected: lockstep_attribute_reverse
        }
    }

    func nextKey() -> PlayerKey? {
        while true {
            var code = wint_t()
            let kind = wget_wch(window, &code)
            guard kind != ERR else { return sequence.end() }
            if let key = kind == KEY_CODE_YES ? function(Int32(bitPattern: code)) : character(code) { return key }
        }
    }

    /// Sequences that aren’t in the terminal’s description arrive one character at a time.
    private func character(_ code: wint_t) -> PlayerKey? {
        guard let byte = UInt8(exactly: code), byte < 0x80 else {
            sequence.end()
            return TerminalKeys.character(UInt32(code))
        }
        return sequence.handle(byte)
    }

    private func mouseKey() -> PlayerKey? {
        var event = MEVENT()
        guard getmouse(&event) == OK else { return nil }
        if event.bstate & lockstep_mouse_wheel_up != 0 { return .up }
        if event.bstate & lockstep_mouse_wheel_down != 0 { return .down }
        guard event.bstate & lockstep_mouse_press != 0 else { return nil }
        return listRows[Int(event.y)].map(PlayerKey.row)
    }

    private func function(_ code: Int32) -> PlayerKey? {
        switch code {
        case KEY_MOUSE: mouseKey()
        case KEY_LEFT: .left
        case KEY_RIGHT: .right
        case KEY_UP: .up
        case KEY_DOWN: .down
        case KEY_PPAGE: .pageUp
        case KEY_NPAGE: .pageDown
        case KEY_HOME: .home
        case KEY_END: .end
        case KEY_ENTER: .enter
        case KEY_DC, KEY_BACKSPACE: .delete
        case KEY_BTAB: .backTab
        default: nil
        }
    }

    func suspend() {
        endwin()
        tcsetattr(STDIN_FILENO, TCSADRAIN, &saved)
    }

    func resume() {
        reset_prog_mode()
        resized()
    }

    func resized() {
        let size = TerminalLocale.size
        if let size { resizeterm(Int32(size.rows), Int32(size.columns)) }
        wresize(window, Int32(size?.rows ?? 24), Int32(size?.columns ?? 80))
        clearok(window, true)
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        curs_set(1)
        endwin()
        tcsetattr(STDIN_FILENO, TCSADRAIN, &saved)
        delwin(window)
        delscreen(screen)
        fclose(files.input)
        fclose(files.output)
    }
}

enum TerminalKeys {
    /// Returns the key of a character; nil for a control character without a meaning.
    static func character(_ code: UInt32) -> PlayerKey? {
        switch code {
        case 10, 13: return .enter
        case 127, 8: return .delete
        case 9: return .tab
        default:
            guard code >= 32, let scalar = Unicode.Scalar(code) else { return nil }
            return .character(Character(scalar))
        }
    }
}

/// The locale, the name and the size of the terminal.
enum TerminalLocale {
    /// Sets the environment’s locale; one without UTF-8 is replaced by the C library’s C.UTF-8.
    static func set() {
        setlocale(LC_ALL, "")
        guard let codeset = nl_langinfo(nl_item(CODESET)), String(cString: codeset) == "UTF-8" else {
            setlocale(LC_CTYPE, "C.UTF-8")
            return
        }
    }

    static var name: String { getenv("TERM").map { String(cString: $0) } ?? "" }

    /// The size that the kernel reports; nil if unknown.
    static var size: (columns: Int, rows: Int)? {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return nil }
        return (Int(size.ws_col), Int(size.ws_row))
    }
}
