import BusKit
import CProcess
import LibC
import PodcastModel
import ProcessKit
import SupervisorControl

extension SupervisorLoop {
    /// Waits for an event or a deadline, and handles it.
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
        // The messages and the output of a process are read before its exit.
        readNotifications(ready)
        readOutput(ready)
        readExits(ready)
        if let signals = configuration.signals, ready.contains(signals) { readSignals() }
        if ready.contains(alerts.descriptor) { readAlertEvents() }
        let now = SystemClocks.monotonic()
        if ready.contains(listener.descriptor) || listener.deadline.map({ $0 <= now }) ?? false {
            connections += listener.accept(now: now)
        }
        serveClients(ready)
        if now >= nextWatchdog {
            // It isn’t sent every turn: the service manager’s queue is short and must have room for other messages.
            notifier.watchdog()
            nextWatchdog = now.advanced(by: .milliseconds(500))
        }
    }

    /// The milliseconds to wait: under a service manager at most a second, for its watchdog.
    private func timeout() -> Int32 {
        var longest: Int32 = notifier.isListenedTo ? 1_000 : 60_000
        // Without pidfds exits are polled for.
        if children.values.contains(where: { $0.pidDescriptor < 0 }) { longest = 50 }
        guard let deadline = [machine.nextDeadline, listener.deadline].compactMap(\.self).min() else { return longest }
        let left = deadline.since(SystemClocks.monotonic()) / .seconds(1)
        return min(longest, Int32(max(0, min(left * 1_000 + 1, 60_000))))
    }

    private func readNotifications(_ ready: Set<Int32>) {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        for notification in notifications where ready.contains(notification.descriptor) {
            for _ in 0..<64 {
                var sender: pid_t = 0
                let count = lockstep_receive_notification(notification.descriptor, &buffer, buffer.count, &sender)
                guard count >= 0 else { break }
                // Late messages of an earlier process, and those of other processes, are ignored.
                guard sender == children[notification.service]?.pid else { continue }
                handleNotification(notification.service, String(decoding: buffer[..<count], as: UTF8.self))
            }
        }
    }

    private func handleNotification(_ service: String, _ message: String) {
        for line in message.split(separator: "\n") {
            switch line {
            case "READY=1": handle(.ready(service))
            case "WATCHDOG=1": handle(.alive(service))
            case _ where line.hasPrefix("STATUS="):
                handle(.status(service, line: String(line.dropFirst(7).prefix(500))))
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
            handle(.crashed(name))
        }
    }

    /// Whether the line is the Swift runtime’s last one of a crash report.
    private static func isEndOfBacktrace(_ line: [UInt8]) -> Bool {
        line.starts(with: "*** Signal ".utf8) && line.suffix(9).elementsEqual(" done ***".utf8)
    }

    private func readExits(_ ready: Set<Int32>) {
        for (name, child) in children where child.pidDescriptor < 0 || ready.contains(child.pidDescriptor) {
            guard let end = child.end() else { continue }
            // The messages that the process sent before its exit are handled first.
            readNotifications(Set(notifications.map(\.descriptor)))
            recordExit(name, end)
        }
    }

    private func recordExit(_ name: String, _ end: ProcessEnd) {
        guard var child = children.removeValue(forKey: name) else { return }
        var lines = child.newLines()
        if let last = child.splitter.finish() { lines.append(last) }
        record(lines, of: name)
        child.release()
        survivors.forget(name)
        if end.isCrash || child.hangingThreads != nil {
            crashes.ensureReport(
                service: name, pid: child.pid, end: end.words, threads: child.hangingThreads ?? [],
                lastLines: (child.lastLines + lines).suffix(20))
        }
        handle(.ended(name, end))
    }

    private func readSignals() {
        guard let signals = configuration.signals else { return }
        while lockstep_next_signal(signals) > 0 {
            stopRequests += 1
            writeLog(stopRequests == 1 ? "stop requested by a signal" : "immediate stop requested by a second signal")
            handle(stopRequests == 1 ? .stop : .kill)
        }
    }

    private func readAlertEvents() {
        for item in alerts.removeEvents() {
            switch item {
            case .retry(let name):
                writeLog("retry of \(name) requested by the answer to its alert")
                handle(.resetFailed(name))
            case .failed(let why): writeLog("alerts can’t be published: \(why)", .warning)
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
