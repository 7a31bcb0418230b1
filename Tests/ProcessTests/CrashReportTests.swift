import BusKit
import Foundation
import LockstepClient
import PodcastModel
import ProcessKit
import Testing
import WireMessages

/// Tests that every crash of a service leaves one readable report, whose path is shown to users.
@Suite
struct CrashReportTests {
    /// The fault that ends a service.
    private enum Fault {
        case fault, trap, hang, stop

        func cause(in service: String, of fleet: ProcessFleet) -> Int32? {
            switch self {
            case .fault: fleet.signal(service, SIGSEGV)
            case .trap: fleet.signal(service, SIGILL)
            case .hang: fleet.hang(service)
            case .stop: fleet.signal(service, SIGSTOP)
            }
        }
    }

    private struct Line: Decodable {
        var name: String
        var state: String
        var crashReport: String?
        var lastExit: String?
    }

    private struct Findings: Decodable {
        struct Crash: Decodable {
            var path: String
            var service: String
            var pid: Int32
        }
        var crashes: [Crash]
    }

    /// The fields that the reports of the runtime and of the supervisor share.
    private struct Report: Decodable {
        var kind: String
        var description: String
    }

    @Test(.timeLimit(.minutes(5)), arguments: ProcessFleet.all)
    func `a fault, a trap and a hang each leave one readable report`(service: String) async throws {
        try await Self.check(service, [.fault, .trap, .hang])
    }

    @Test(.timeLimit(.minutes(5)))
    func `a process that is stopped leaves one readable report`() async throws {
        try await Self.check("queue", [.stop])
    }

    private static func check(_ service: String, _ faults: [Fault]) async throws {
        try await ProcessFleet.with { fleet in
            try await FleetObserver.with(1, of: fleet) { observers in
                var reports: [String] = []
                for fault in faults {
                    try await observers[0].untilReady()
                    let pid = try await end(service, by: fault, fleet, observers[0])
                    let found = try Self.paths(of: service, pid, in: fleet)
                    #expect(found.count == 1, "\(fault): \(found)")
                    let path = try #require(found.first)
                    reports.append(path)
                    let data = try Data(contentsOf: URL(filePath: path))
                    let report = try JSONDecoder().decode(Report.self, from: data)
                    #expect(["crashReport", "supervisorReport"].contains(report.kind))
                    #expect(!report.description.isEmpty)
                    if fault == .hang, report.kind == "crashReport" {
                        #expect(String(decoding: data, as: UTF8.self).contains("HangInjection"), "where it hangs")
                    }
                    let lines = try await fleet.decode([Line].self, from: "ps")
                    let line = try #require(lines.first { $0.name == service })
                    #expect(line.crashReport == path, "\(fault)")
                    #expect(line.lastExit?.isEmpty == false)
                }
                let findings = try await fleet.decode(Findings.self, from: "doctor")
                let listed = findings.crashes.filter { $0.service == service }
                #expect(listed.map(\.path) == reports.reversed())
            }
        }
    }

    /// Ends the service, waits until it is restarted, and returns the ended process.
    private static func end(
        _ service: String, by fault: Fault, _ fleet: ProcessFleet, _ observer: FleetObserver
    ) async throws -> Int32 {
        let name = try #require(ServiceName(service))
        let generation = observer.view.replica.ready[name] ?? 0
        let epoch = observer.view.replica.position.epoch
        let pid = try #require(fault.cause(in: service, of: fleet))
        try await observer.until("\(service) is ready after a \(fault)", within: .seconds(120)) { view in
            guard name != .bus else { return view.connection == .live && view.replica.position.epoch > epoch }
            return view.replica.ready[name] ?? 0 > generation
        }
        return pid
    }

    /// The reports about a process.
    private static func paths(of service: String, _ pid: Int32, in fleet: ProcessFleet) throws -> [String] {
        let folder = fleet.home.crashDirectory
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        return names.filter { $0.contains("-\(pid)-") }.map { folder + "/" + $0 }
    }
}
