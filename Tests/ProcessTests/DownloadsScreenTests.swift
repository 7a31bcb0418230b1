import BusKit
import CProcess
import Foundation
import LockstepClient
import Logging
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests the output of `downloads` with and without a terminal. The bus is real; the test acts as the downloads
/// service.
@Suite(.serialized, .timeLimit(.minutes(5))) struct DownloadsScreenTests {
    /// Acts as the downloads service on a bus.
    private struct Downloads: Sendable {
        let host: ServiceHost

        /// Publishes the state of a file.
        func put(_ episode: String, _ state: WireDownload.State, _ received: UInt64 = 0) async throws {
            try await host.publish([Self.publication(episode, state, received)])
        }

        /// Publishes the number of received bytes.
        func progress(_ episode: String, _ received: UInt64) async throws {
            let news = WireDownloadProgress.with {
                $0.episode = episode
                $0.receivedBytes = received
                $0.totalBytes = 10_000_000
                $0.bytesPerSecond = 1_000_000
            }
            try await host.publish([Publication(.live, .downloadProgress(episode), news.wireBytes)])
        }

        static func publication(
            _ episode: String, _ state: WireDownload.State, _ received: UInt64 = 0
        ) -> Publication {
            let download = WireDownload.with {
                $0.episode = episode
                $0.state = state
                $0.title = "Title of \(episode)"
                $0.receivedBytes = received
                $0.totalBytes = 10_000_000
            }
            return Publication(.put, .download(episode), download.wireBytes)
        }
    }

    /// Runs with a bus and the downloads service on it: one file is queued, one is downloading.
    private static func withDownloads(
        _ body: @escaping @Sendable (ProcessFleet, Downloads) async throws -> Void
    ) async throws {
        try await ProcessFleet.with(isUp: false) { fleet in
            try fleet.home.prepare()
            let bus = try ChildProgram.withNullDevice {
                try ChildProgram.start(
                    [ProcessFleet.binaries + "/lockstep-bus"], environment: fleet.environment, input: $0, output: $0,
                    in: fleet.root)
            }
            defer {
                kill(bus, SIGKILL)
                lockstep_reap(bus)
            }
            var logger = Logger(label: "downloads") { _ in SwiftLogNoOpLogHandler() }
            logger.logLevel = .critical
            let host = ServiceHost(
                name: .downloads, generation: 1, runDirectory: fleet.home.runDirectory, logger: logger)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await host.run {
                        [
                            Downloads.publication("e1", .downloading, 1_000_000),
                            Downloads.publication("e2", .queued),
                        ]
                    }
                }
                host.ready()
                do {
                    try await untilReady(fleet)
                    try await body(fleet, Downloads(host: host))
                } catch {
                    host.shutdown()
                    try? await group.waitForAll()
                    throw error
                }
                host.shutdown()
                try await group.waitForAll()
            }
        }
    }

    private static func untilReady(_ fleet: ProcessFleet) async throws {
        try await FleetObserver.with(1, of: fleet) { observers in
            try await observers[0].until("the downloads are shown") { $0.replica.ready[.downloads] != nil }
        }
    }

    @Test func `bars advance on a terminal until no download is active`() async throws {
        try await Self.withDownloads { fleet, downloads in
            let script = "\"$LOCKSTEP\" downloads; echo \"left with $?.\"; read line"
            try await TerminalShell.with(fleet, script, columns: 100) { shell in
                try await shell.until(sees: "10 % ━")
                try await shell.until(sees: "queued")
                try await downloads.progress("e1", 5_000_000)
                try await shell.until(sees: "50 % ━")
                #expect(shell.screen.text.contains("5.0 MB of 10.0 MB, 1.0 MB/s, 5 s left"))
                // The terminal becomes narrower, then wide again: no old line remains visible.
                shell.resize(columns: 50, rows: 24)
                try await downloads.progress("e1", 6_000_000)
                try await shell.until("60 % is shown on narrow lines") { screen in
                    screen.lines.filter { $0.contains("Title of e1") }.count == 1 && screen.text.contains("60 %")
                }
                shell.resize(columns: 100, rows: 24)
                try await downloads.put("e1", .downloaded, 10_000_000)
                try await shell.until(sees: "downloaded, 10.0 MB")
                #expect(!shell.screen.text.contains("left with"))
                try await downloads.put("e2", .paused, 2_000_000)
                try await shell.until(sees: "left with 0.")
                #expect(shell.screen.text.contains("paused at 2.0 MB of 10.0 MB"))
                #expect(shell.screen.lines.filter { $0.contains("Title of e1") }.count == 1)
                #expect(shell.modesNow == shell.modes)
            }
        }
    }

    @Test(arguments: [false, true]) func `a resize redraws the same table in place, and q ends it but keeps the table`(
        wraps: Bool
    ) async throws {
        try await Self.withDownloads { fleet, downloads in
            let script = "echo above; \"$LOCKSTEP\" downloads; echo \"left with $?.\"; read line"
            try await TerminalShell.with(fleet, script, columns: 100, wraps: wraps) { shell in
                try await shell.until(sees: "10 % ━")
                try await downloads.progress("e1", 5_000_000)
                try await shell.until(sees: "50 % ━")
                for (columns, rows) in [(50, 24), (100, 30), (40, 10), (80, 24)] {
                    shell.resize(columns: columns, rows: rows)
                    // No update that would redraw the table arrives meanwhile.
                    try await shell.until("only the table on \(columns) columns is shown") { screen in
                        screen.lines[0] == "above" && screen.lines[1].hasPrefix("Title of e1")
                            && screen.lines[1].count == columns - 1 && screen.lines[2].hasPrefix("Title of e2")
                            && screen.lines.dropFirst(3).allSatisfy(\.isEmpty)
                    }
                }
                #expect(shell.modesNow != shell.modes)
                shell.type("q")
                try await shell.until(sees: "left with 0.")
                #expect(shell.screen.lines[3] == "left with 0.")
                #expect(shell.modesNow == shell.modes)
            }
        }
    }

    private struct Line: Decodable {
        var episode: String
        var state: String
        var receivedBytes: UInt64
        var totalBytes: UInt64?
    }

    @Test func `without a terminal the downloads are printed once`() async throws {
        try await Self.withDownloads { fleet, downloads in
            let lines = try await fleet.decode([Line].self, from: "downloads")
            #expect(lines.map(\.episode) == ["e1", "e2"])
            #expect(lines.map(\.state) == ["downloading", "queued"])
            #expect(lines[0].receivedBytes == 1_000_000 && lines[0].totalBytes == 10_000_000)
            let text = try await fleet.succeed("downloads")
            #expect(text.contains("Title of e1") && text.contains("downloading 10 %, 1.0 MB of 10.0 MB"))
        }
    }

    @Test func `without a terminal the downloads print their progress`() async throws {
        try await Self.withDownloads { fleet, downloads in
            let telling = Task {
                while !Task.isCancelled {
                    try await downloads.progress("e1", 7_000_000)
                    try await ContinuousClock().sleep(for: .milliseconds(50))
                }
            }
            let text = try await fleet.succeed("downloads")
            telling.cancel()
            _ = await telling.result
            #expect(text.contains("downloading 70 %, 7.0 MB of 10.0 MB"), "\(text)")
        }
    }

    @Test func `without a terminal watch prints each change as a line`() async throws {
        try await Self.withDownloads { fleet, downloads in
            try await FleetProgram.with([["downloads", "--watch"], ["downloads", "--watch", "--json"]], of: fleet) {
                programs in
                for program in programs { try await program.until("both files are shown") { $0.count == 2 } }
                try await downloads.progress("e1", 1_500_000)
                try await downloads.progress("e1", 2_500_000)
                for program in programs { try await program.until("ten per cent more is shown") { $0.count == 3 } }
                try await downloads.put("e1", .downloaded, 10_000_000)
                for program in programs { try await program.until("the end is shown") { $0.count == 4 } }
                #expect(
                    programs[0].lines == [
                        "“Title of e1”: downloading 10 %, 1.0 MB of 10.0 MB.", "“Title of e2”: queued.",
                        "“Title of e1”: downloading 25 %, 2.5 MB of 10.0 MB.",
                        "“Title of e1”: downloaded, 10.0 MB.",
                    ])
                #expect(
                    programs[1].lines[3].hasPrefix(
                        #"{"episode":"e1","state":"downloaded","receivedBytes":10000000,"totalBytes":10000000,"error":null,"#
                    ))
            }
        }
    }
}
