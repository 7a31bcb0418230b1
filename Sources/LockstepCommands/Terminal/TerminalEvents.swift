import LibC

/// A user of the terminal, which restores the terminal while the program is stopped.
protocol TerminalUser: AnyObject {
    /// Restores the terminal’s original state.
    func suspend()
    /// Takes over the terminal again after `suspend`, or after another program wrote to it.
    func resume()
    func resized()
}

/// The events of a screen: signals, inbox items and keys.
struct TerminalEvents {
    struct Batch {
        var signals: [Int32] = []
        var news: [PlayerInbox.Item] = []
        /// Whether the terminal was disconnected, so that no more keys arrive.
        var isHungUp = false
    }

    let signals: TerminalSignals
    let inbox: PlayerInbox

    /// Waits for events, including keys if `hasKeys`, for at most `limit` milliseconds; −1 for no limit.
    ///
    /// - Returns: nil if `poll` fails.
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

    /// Handles signals for a user of the terminal.
    ///
    /// - Returns: the exit status for a terminating signal, 128 and its number; nil to continue.
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
