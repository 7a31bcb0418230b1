import LibC

/// What has the terminal, and gives it back while the program is stopped.
protocol TerminalUser: AnyObject {
    /// Gives the terminal back, as it was.
    func suspend()
    /// Takes it again after `suspend`, or after somebody else wrote on it.
    func resume()
    /// The terminal has another size.
    func resized()
}

/// What a screen waits for: signals, news and keys.
struct TerminalEvents {
    /// What woke it.
    struct Batch {
        /// The signals that came, in order.
        var signals: [Int32] = []
        /// The news, in order.
        var news: [PlayerInbox.Item] = []
        /// Whether nobody can press keys any more.
        var isHungUp = false
    }

    let signals: TerminalSignals
    let inbox: PlayerInbox

    /// Waits until something comes, at most so many milliseconds; −1: for ever.
    ///
    /// - Parameter hasKeys: whether keys are waited for, too.
    /// - Returns: nil when nothing can be waited for.
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

    /// Does what signals ask of the screen that `user` shows.
    ///
    /// - Returns: the exit status of one that ends it, 128 and its number; nil: it goes on.
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
