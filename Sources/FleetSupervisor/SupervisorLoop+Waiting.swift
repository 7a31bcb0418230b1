import BusKit
import CProcess
import LibC
import PodcastModel
import ProcessKit
import SupervisorControl

extension SupervisorLoop {
    /// Waits until something happens or is due, and takes it in.
    func wait() {
        var waiting: [pollfd] = []
        func watch(_ descriptor: Int32, _ events: Int32 = POLLIN) {
            waiting.append(pollfd(fd: descriptor, events: Int16(events), revents: 0))
        }
        watch(listener.descriptor)
        watch(alerts.descriptor)
        watch(configuration.signals ?? -1)
        for notification in notifications { watch(notification.descriptor) }
        for child in children.values {
            watch(child.pidDescriptor)
            watch(child.output)
        }
        for connection in connections {
            watch(connection.descriptor, connection.output.isEmpty ? POLLIN : POLLIN | POLLOUT)
        }
        let count = poll(&waiting, nfds_t(waiting.count), timeout())
        let ready = count > 0 ? Set(waiting.lazy.filter { $0.revents != 0 }.map(\.fd)) : []
        // First what a process said, then its end.
        readNotifications(ready)
        readOutput(ready)
        readEnds(ready)
        if let signals = configuration.signals, ready.contains(signals) { readSignals() }
        if ready.contains(alerts.descriptor) { readNews() }
        let now = SystemClocks.monotonic()
        if ready.contains(listener.descriptor) || listener.deadline.map({ $0 <= now }) ?? false {
            connections += listener.accept(now: now)
        }
        serveClients(ready)
        if now >= nextWatchdog {
            // Not at every turn: the service manager’s queue is short, and must have room for other messages.
            notifier.watchdog()
            nextWatchdog = now.advanced(by: .milliseconds(500))
        }
    }

    /// Milliseconds. Under a service manager at most a second, for its watchdog.
    private func timeout() -> Int32 {
        var longest: Int32 = notifier.isListenedTo ? 1_000 : 60_000
        // Without pidfds ends are looked for.
        if children.values.contains(where: { $0.pidDescriptor < 0 }) { longest = 50 }
        guard let deadline = [machine.nextDeadline, listener.deadline].compactMap(\.self).min() else { return longest }
        let left = deadline.since(SystemClocks.monotonic()).inSeconds
        return min(longest, Int32(max(0, min(left * 1_000 + 1, 60_000))))
    }

    private func readNotifications(_ ready: Set<Int32>) {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        for notification in notifications where ready.contains(notification.descriptor) {
            for _ in 0..<64 {
                var sender: pid_t = 0
                let count = lockstep_receive_notification(notification.descriptor, &buffer, buffer.count, &sender)
                guard count >= 0 else { break }
                // Late words of an earlier process, and words of others, are nobody's.
                guard sender == children[notification.service]?.pid else { continue }
                hear(notification.service, String(decoding: buffer[..<count], as: UTF8.self))
            }
        }
    }

    private func hear(_ service: String, _ message: String) {
        for line in message.split(separator: "\n") {
            switch line {
            case "READY=1": take(.ready(service))
            case "WATCHDOG=1": take(.alive(service))
            case _ where line.hasPrefix("STATUS="): take(.status(service, line: String(line.dropFirst(7).prefix(500))))
            default: break
            }
        }
    }

    private func readOutput(_ ready: Set<Int32>) {
        for (name, child) in children where ready.contains(child.output) {
            guard let lines = children[name]?.newLines(), !lines.isEmpty else { continue }
            record(lines, of: name)
            guard lines.contains(where: Self.isEndOfBacktrace) else { continue }
            if children[name]?.hangingThreads == nil { children[name]?.hangingThreads = [] }
            take(.crashed(name))
        }
    }

    /// What the Swift runtime prints when its crash report is written.
    private static func isEndOfBacktrace(_ line: [UInt8]) -> Bool {
        line.starts(with: "*** Signal ".utf8) && line.suffix(9).elementsEqual(" done ***".utf8)
    }

    private func readEnds(_ ready: Set<Int32>) {
        for (name, child) in children where child.pidDescriptor < 0 || ready.contains(child.pidDescriptor) {
            guard let end = child.end() else { continue }
            // What it said before its end counts.
            readNotifications(Set(notifications.map(\.descriptor)))
            bury(name, end)
        }
    }

    private func bury(_ name: String, _ end: ProcessEnd) {
        guard var child = children.removeValue(forKey: name) else { return }
        var lines = child.newLines()
        if let last = child.splitter.finish() { lines.append(last) }
        record(lines, of: name)
        child.release()
        survivors.forget(name)
        if end.isCrash || child.hangingThreads != nil {
            crashes.settle(
                service: name, pid: child.pid, end: end.words, threads: child.hangingThreads ?? [],
                lastLines: (child.lastLines + lines).suffix(20))
        }
        take(.ended(name, end))
    }

    private func readSignals() {
        guard let signals = configuration.signals else { return }
        while lockstep_next_signal(signals) > 0 {
            stopRequests += 1
            say(stopRequests == 1 ? "asked to stop by a signal" : "asked to stop at once by a second signal")
            take(stopRequests == 1 ? .stop : .kill)
        }
    }

    private func readNews() {
        for item in alerts.takeNews() {
            switch item {
            case .retry(let name):
                say("asked to try \(name) again, by the answer to its alert")
                take(.resetFailed(name))
            case .failed(let why): say("alerts cannot be shown: \(why)")
            }
        }
    }

    private func serveClients(_ ready: Set<Int32>) {
        for index in connections.indices {
            guard ready.contains(connections[index].descriptor) || !connections[index].output.isEmpty else { continue }
            for line in connections[index].requests() { answer(line, at: index) }
            connections[index].flush()
        }
        connections.removeAll { connection in
            if connection.isBroken { close(connection.descriptor) }
            return connection.isBroken
        }
    }
}
