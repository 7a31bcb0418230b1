import LibC

/// A user of the terminal, who gives it back while the program is stopped.
protocol TerminalUser: AnyObject {
    /// Gives the terminal back as it was.
    func suspend()
    /// Takes it again after `suspend`, or after another program wrote on it.
    func resume()
    /// The terminal has another size.
    func resized()
}

/// The events of a screen: signals, news and keys.
struct TerminalEvents {
    struct Batch {
        var signals: [Int32] = []
        var news: [PlayerInbox.Item] = []
        /// Whether nobody can press keys any more.
        var isHungUp = false
    }

    let signals: TerminalSignals
    let inbox: PlayerInbox

    /// Waits for events, keys among them if `hasKeys`, for `limit` milliseconds at most; −1: without a limit.
    ///
    /// - Returns: nil when `poll` fails.
    func next(within limit: Int32 = -1, hasKeys: Bool = true) -> Batch? {
        var waiting = [
            pollfd(fd: hasKeys ? STDIN_FILENO : -1, events: Int16(POLLIN), revents: 0),
            pollfd(fd: signals.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: inbox.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        if poll(&waiting, nfds_t(waiting.count), limit) < 0, errno != EINTR { return nil }
        var batch = Batch()
        while let number = signals.next() { batch.signals.append(number) }
        batch.news = inbox.takeAll()
        batch.isHungUp = waiting[0].revents & (Int16(POLLHUP) | Int16(POLLERR) | Int16(POLLNVAL)) != 0
        return batch
    }

    /// Handles signals.
    ///
    /// - Returns: the exit status for a signal that ends the program, 128 and its number; nil: it continues.
    func handle(_ numbers: [Int32], for user: some TerminalUser) -> Int32? {
        for number in numbers {
            switch number {
            case SIGWINCH: user.resized()
            case SIGTSTP:
                user.suspend()
                signals.stopProcess()
                user.resume()
            case SIGCONT: user.resume()
            default: return 128 + number
            }
        }
        return nil
    }
}
