import CProcess
import LibC
import TestSupport
import Testing

@testable import ProcessKit

@Suite(.timeLimit(.minutes(1))) struct ProcessNotifierTests {
    /// Receives datagrams until one is `line`. Returns the number of earlier datagrams; nil if `line` isn’t received.
    private static func count(_ socket: Int32, before line: String) -> Int? {
        var buffer = [UInt8](repeating: 0, count: 256)
        var sender: pid_t = 0
        for number in 0... {
            var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, 5_000) > 0 else { return nil }
            let count = lockstep_receive_notification(socket, &buffer, buffer.count, &sender)
            if count > 0, String(decoding: buffer[..<count], as: UTF8.self) == line { return number }
        }
        return nil
    }

    @Test(arguments: ["READY=1", "STOPPING=1"])
    func `a message that is sent once waits for space in a full queue`(line: String) throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/notify"
        let socket = lockstep_notification_socket(path)
        try #require(socket >= 0)
        defer { close(socket) }
        let notifier = ProcessNotifier(environment: ["NOTIFY_SOCKET": path])
        // More datagrams than any queue holds: `net.unix.max_dgram_qlen` is 512 at most where systemd sets it.
        for _ in 0..<1_000 { notifier.watchdog() }
        let sender = try #require(
            SystemThread(stackSize: 64 << 10) { line == "READY=1" ? notifier.ready() : notifier.stopping() })
        let before = Self.count(socket, before: line)
        sender.join()
        #expect(try #require(before) > 0)
    }
}
