import BusKit
import FleetHome
import Foundation
import PodcastModel
import Testing
import WireMessages

@testable import PersistenceService

/// A machine with a manual clock, and its effects.
struct MachineBench {
    typealias Ticket = PersistenceMachine.Ticket
    var machine: PersistenceMachine
    var now = Moment(monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000), wall: StoreFixture.moment())

    init(_ change: (inout StoreFacts) -> Void = { _ in }) {
        var facts = StoreFacts(incarnation: "d1")
        facts.copies = [StoreFixture.copy(.backup, at: -60)]
        change(&facts)
        machine = PersistenceMachine(facts, now: now)
    }

    mutating func send(_ event: PersistenceMachine.Event) -> [PersistenceMachine.Effect] {
        machine.handle(event, now: now)
    }

    mutating func request(
        _ number: UInt64, deadline: MonotonicTime? = nil, _ change: (inout WirePersistenceRequest) -> Void
    ) -> [PersistenceMachine.Effect] {
        var request = WirePersistenceRequest()
        change(&request)
        return send(.request(Ticket(number), request.wireBytes, deadline: deadline))
    }

    mutating func pass(_ seconds: Int64) -> [PersistenceMachine.Effect] {
        now.monotonic = now.monotonic.advanced(by: .seconds(seconds))
        now.wall = Timestamp(milliseconds: now.wall.milliseconds + seconds * 1_000)
        return send(.wake)
    }

    /// The result of a write effect in which every write succeeded.
    static func done(_ count: Int, _ change: (inout StoreBatchResult) -> Void = { _ in }) -> StoreBatchResult {
        var result = StoreBatchResult(results: Array(repeating: .success(WirePersistenceReply()), count: count))
        change(&result)
        return result
    }
}

extension [PersistenceMachine.Effect] {
    var names: [String] {
        map { effect in
            switch effect {
            case .write(let writes): "write \(writes.count)"
            case .ask(let ticket, _): "ask \(ticket.number)"
            case .copy(let kind): "copy \(kind)"
            case .prune: "prune"
            case .checkpoint: "checkpoint"
            case .count: "count"
            case .check: "check"
            case .rebuild: "rebuild"
            case .suspect: "suspect"
            case .reply(let ticket, .success): "reply \(ticket.number)"
            case .reply(let ticket, .failure(let failure)): "refuse \(ticket.number) \(failure.code)"
            case .publish(let all): "publish " + all.map { "\($0.kind) \($0.topic.text)" }.joined(separator: " ")
            case .wake: "wake"
            case .log: "log"
            case .stop(let failure): "stop \(failure?.code ?? "")"
            }
        }
    }

    /// The effects without those that are irrelevant to most tests.
    var work: [String] { names.filter { $0 != "wake" && $0 != "log" && $0 != "publish put stream/persistence/status" } }

    var published: [Publication] {
        flatMap { effect -> [Publication] in
            if case .publish(let all) = effect { all } else { [] }
        }
    }

    var status: WirePersistenceStatus? {
        published.last { $0.topic == .persistenceStatus }.flatMap { try? WirePersistenceStatus(wireBytes: $0.payload) }
    }
}

@Suite struct PersistenceMachineTests {
    private let full = Failure(.diskFull, "full")

    @Test func `waiting writes share one transaction after the one in progress`() {
        var bench = MachineBench()
        #expect(bench.send(.started).work == [])
        #expect(bench.request(1) { $0.commit.owner = "queue" }.work == ["write 1"])
        #expect(bench.request(2) { $0.commit.owner = "feeds" }.work == [])
        #expect(bench.request(3) { $0.load.owner = "playback" }.work == [])
        let next = bench.send(.wrote(MachineBench.done(1)))
        #expect(next.work == ["reply 1", "write 2"])
        let last = bench.send(.wrote(MachineBench.done(2)))
        #expect(last.work == ["reply 2", "reply 3"])
    }

    @Test func `a huge request gets a transaction of its own`() {
        var bench = MachineBench()
        _ = bench.request(1) { $0.commit.owner = "queue" }
        for number in 2...4 {
            _ = bench.request(UInt64(number)) {
                $0.commit.owner = "feeds"
                $0.commit.commits = [WireCommit("c", at: 0, [.put("a", "b", String(repeating: "x", count: 3 << 20))])]
            }
        }
        #expect(bench.send(.wrote(MachineBench.done(1))).work == ["reply 1", "write 1"])
        #expect(bench.send(.wrote(MachineBench.done(1))).work == ["reply 2", "write 1"])
    }

    @Test func `four queries at a time run concurrently with the writer`() {
        var bench = MachineBench()
        _ = bench.request(1) { $0.commit.owner = "queue" }
        var started: [String] = []
        for number in 2...8 { started += bench.request(UInt64(number)) { $0.episodes = WireEpisodesQuery() }.work }
        #expect(started == ["ask 2", "ask 3", "ask 4", "ask 5"])
        #expect(bench.send(.answered(.init(3), .success(WirePersistenceReply()))).work == ["reply 3", "ask 6"])
        #expect(
            bench.send(.answered(.init(4), .failure(Failure(.notFound, "no")))).work == ["refuse 4 notFound", "ask 7"])
    }

    @Test func `malformed, unknown and expired requests are refused`() {
        var bench = MachineBench()
        #expect(bench.send(.request(.init(1), [0xFF, 0xFF], deadline: nil)).work == ["refuse 1 malformed"])
        #expect(bench.send(.request(.init(2), [], deadline: nil)).work == ["refuse 2 unknownCommand"])
        let past = MonotonicTime(nanoseconds: 1)
        #expect(bench.request(3, deadline: past) { $0.commit.owner = "queue" }.work == ["refuse 3 expired"])
    }

    @Test func `the status is retained, and published when it changes`() throws {
        var bench = MachineBench {
            $0.podcasts = 3
            $0.episodes = 40
        }
        let first = try #require(bench.send(.started).status)
        #expect(first.incarnation == "d1")
        #expect(first.schemaVersion == UInt32(Schema.version))
        #expect(first.podcasts == 3)
        #expect(bench.machine.retained().map(\.topic) == [.persistenceStatus])
        #expect(bench.pass(1).status == nil)
        _ = bench.request(1) { $0.commit.owner = "feeds" }
        _ = bench.send(.wrote(MachineBench.done(1) { $0.changed = .library }))
        #expect(bench.pass(1).work == ["count"])
        #expect(bench.send(.counted(.success((podcasts: 4, episodes: 44)))).status?.episodes == 44)
    }

    @Test func `a full disk is reported, probed and recovered from`() throws {
        var bench = MachineBench()
        _ = bench.send(.started)
        _ = bench.request(1) { $0.commit.owner = "queue" }
        let refused = StoreBatchResult(results: [.failure(full)], failures: [full])
        let effects = bench.send(.wrote(refused))
        #expect(effects.status?.diskFull == true)
        let alert = try #require(effects.published.first { $0.topic.text.contains("/alert/") })
        #expect(try WireAlert(wireBytes: alert.payload).code == "diskFull")
        #expect(bench.machine.retained().count == 2)
        // The disk is still full: one alert stays, and the disk is probed every five seconds.
        #expect(bench.pass(4).work == [])
        #expect(bench.pass(1).work == ["write 1"])
        #expect(bench.send(.wrote(refused)).published.isEmpty)
        #expect(bench.pass(5).work == ["write 1"])
        let recovered = bench.send(.wrote(MachineBench.done(1)))
        #expect(recovered.status?.diskFull == false)
        #expect(recovered.published.contains { $0.kind == .delete && $0.topic == alert.topic })
        #expect(bench.pass(5).work == [])
        #expect(bench.machine.retained().count == 1)
    }

    @Test func `a side snapshot follows a change within five minutes`() {
        var bench = MachineBench()
        _ = bench.send(.started)
        _ = bench.request(1) { $0.commit.owner = "queue" }
        _ = bench.send(.wrote(MachineBench.done(1) { $0.changed = .snapshot }))
        #expect(bench.pass(239).work.contains("copy snapshot") == false)
        // A later change does not postpone the snapshot.
        _ = bench.request(2) { $0.commit.owner = "queue" }
        _ = bench.send(.wrote(MachineBench.done(1) { $0.changed = .snapshot }))
        #expect(bench.pass(1).work == ["copy snapshot"])
        #expect(bench.pass(60).work == [])
        _ = bench.send(.copied(.snapshot, .failure(full)))
        #expect(bench.pass(30).work == ["copy snapshot"])
        _ = bench.send(
            .copied(.snapshot, .success(DatabaseCopy(kind: .snapshot, path: "s", at: StoreFixture.moment(), bytes: 1))))
        #expect(!bench.pass(290).work.contains("copy snapshot"))
    }

    /// Performs one write, which adds a number of pages to the log.
    private func write(_ number: UInt64, pages: Int, _ bench: inout MachineBench) -> [String] {
        let begun = bench.request(number) { $0.commit.owner = "queue" }.work
        return begun + bench.send(.wrote(MachineBench.done(1) { $0.pages = pages })).work
    }

    @Test func `a checkpoint waits for an idle moment and a minimum length of the log`() {
        var bench = MachineBench()
        #expect(!write(1, pages: MaintenanceSchedule.checkpointPages - 1, &bench).contains("checkpoint"))
        #expect(!bench.pass(20).work.contains("checkpoint"), "a short log is left")
        for number in 2...50 {
            #expect(!write(UInt64(number), pages: 5, &bench).contains("checkpoint"))
            #expect(!bench.pass(1).work.contains("checkpoint"))
        }
        #expect(bench.pass(1).work == ["checkpoint"])
        #expect(bench.send(.checkpointed(.success(0))).work == [])
        #expect(!bench.pass(50).work.contains("checkpoint"))
    }

    @Test func `a long log needs only a short idle time`() {
        var bench = MachineBench()
        _ = write(1, pages: MaintenanceSchedule.urgentCheckpointPages, &bench)
        bench.now.monotonic = bench.now.monotonic.advanced(by: .milliseconds(99))
        #expect(bench.send(.wake).work == [])
        bench.now.monotonic = bench.now.monotonic.advanced(by: .milliseconds(1))
        #expect(bench.send(.wake).work == ["checkpoint"])
    }

    @Test func `a commit that is being written delays the checkpoint`() {
        var bench = MachineBench()
        _ = write(1, pages: 1_000, &bench)
        #expect(bench.request(2) { $0.commit.owner = "queue" }.work == ["write 1"])
        #expect(bench.pass(5).work == [])
        #expect(bench.send(.wrote(MachineBench.done(1) { $0.pages = 4 })).work == ["reply 2"])
        #expect(bench.pass(2).work == ["checkpoint"])
        // Commits that arrive meanwhile wait in the same queue; the service does not stop before the checkpoint ends.
        #expect(bench.send(.stopping).work == [])
        #expect(bench.send(.checkpointed(.success(0))).work == ["stop "])
    }

    @Test(arguments: [Result<Int, Failure>.success(1_000), .failure(Failure(.diskFull, "full"))])
    func `a checkpoint that couldn’t copy everything is retried later`(result: Result<Int, Failure>) {
        var bench = MachineBench()
        _ = write(1, pages: 1_000, &bench)
        #expect(bench.pass(2).work == ["checkpoint"])
        #expect(bench.send(.checkpointed(result)).work == [])
        #expect(!write(2, pages: 4, &bench).contains("checkpoint"))
        #expect(!bench.pass(29).work.contains("checkpoint"))
        #expect(bench.pass(1).work == ["checkpoint"])
    }

    @Test func `the log that a killed service left is copied once the next service is idle`() {
        var bench = MachineBench { $0.loggedPages = 2_000 }
        #expect(bench.send(.started).work == [])
        #expect(bench.pass(2).work == ["checkpoint"])
    }

    @Test func `a change during a snapshot causes another snapshot`() {
        var bench = MachineBench()
        _ = bench.request(1) { $0.commit.owner = "queue" }
        _ = bench.send(.wrote(MachineBench.done(1) { $0.changed = .snapshot }))
        _ = bench.pass(240)
        _ = bench.request(2) { $0.commit.owner = "queue" }
        _ = bench.send(.wrote(MachineBench.done(1) { $0.changed = .snapshot }))
        _ = bench.send(
            .copied(.snapshot, .success(DatabaseCopy(kind: .snapshot, path: "s", at: bench.now.wall, bytes: 1))))
        #expect(bench.pass(240).work.contains("copy snapshot"))
    }

    @Test func `a backup is made daily and by command`() {
        var bench = MachineBench()
        _ = bench.send(.started)
        #expect(bench.request(1) { $0.backup = WireBackup() }.work == ["copy backup"])
        #expect(bench.request(2) { $0.backup = WireBackup() }.work == [])
        let copy = DatabaseCopy(kind: .backup, path: "b", at: bench.now.wall, bytes: 9)
        #expect(bench.request(3) { $0.backup = WireBackup() }.work == [])
        // The others arrived while the first was in progress, which may lack what was written before them.
        let first = bench.send(.copied(.backup, .success(copy)))
        #expect(first.work == ["reply 1", "copy backup"])
        let done = bench.send(.copied(.backup, .success(copy)))
        #expect(done.work.prefix(2) == ["reply 2", "reply 3"])
        #expect(first.status?.lastBackup == bench.now.wall.milliseconds)
        var again = MachineBench { $0.copies = [StoreFixture.copy(.backup, at: -86_400)] }
        #expect(!again.send(.started).work.contains("copy backup"))
        #expect(again.pass(300).work.contains("copy backup"))
        var never = MachineBench { $0.copies = [] }
        #expect(never.pass(299).work.contains("copy backup") == false)
        #expect(never.pass(1).work.contains("copy backup"))
    }

    @Test func `a large database is backed up less often`() {
        for (bytes, days) in [(24 << 20, 1), (24 << 20 + 1, 2), (240 << 20, 10), (9 << 30, 28)] as [(UInt64, Int64)] {
            #expect(StoreFixture.copy(.backup, at: 0, bytes: bytes).interval == days * 86_400_000)
        }
        let day = Int64(86_400)
        let snapshot = StoreFixture.copy(.snapshot, at: -60)
        var early = MachineBench {
            $0.copies = [snapshot, StoreFixture.copy(.backup, at: -9 * day, bytes: 240 << 20)]
        }
        _ = early.send(.started)
        #expect(!early.pass(600).work.contains("copy backup"))
        var late = MachineBench {
            $0.copies = [snapshot, StoreFixture.copy(.backup, at: -10 * day, bytes: 240 << 20)]
        }
        _ = late.send(.started)
        #expect(late.pass(300).work.contains("copy backup"))
    }

    @Test func `a side snapshot saves positions daily if anything was written`() {
        let day = Int64(86_400)
        var bench = MachineBench {
            $0.copies = [
                StoreFixture.copy(.snapshot, at: -day), StoreFixture.copy(.backup, at: -2 * day, bytes: 240 << 20),
            ]
        }
        _ = bench.send(.started)
        #expect(!bench.pass(299).work.contains("copy snapshot"))
        #expect(bench.pass(1).work.contains("copy snapshot"))
        func end(_ bench: inout MachineBench) {
            let copy = DatabaseCopy(kind: .snapshot, path: "s", at: bench.now.wall, bytes: 1)
            _ = bench.send(.copied(.snapshot, .success(copy)))
        }
        end(&bench)
        #expect(!bench.pass(day).work.contains("copy snapshot"), "nothing was written")
        _ = bench.request(1) { $0.commit.owner = "playback" }
        #expect(bench.send(.wrote(MachineBench.done(1) { $0.pages = 1 })).work.contains("copy snapshot"))
        end(&bench)
        _ = bench.request(2) { $0.commit.owner = "playback" }
        _ = bench.send(.wrote(MachineBench.done(1) { $0.pages = 1 }))
        #expect(!bench.pass(day - 1).work.contains("copy snapshot"))
        #expect(bench.pass(1).work.contains("copy snapshot"))
        // A failure is retried.
        _ = bench.send(.copied(.snapshot, .failure(full)))
        #expect(bench.pass(30).work.contains("copy snapshot"))
    }

    @Test func `large side snapshots are made less often`() {
        var bench = MachineBench()
        _ = bench.send(.started)
        func change(_ number: UInt64) {
            _ = bench.request(number) { $0.commit.owner = "queue" }
            _ = bench.send(.wrote(MachineBench.done(1) { $0.changed = .snapshot }))
        }
        change(1)
        #expect(bench.pass(240).work.contains("copy snapshot"))
        // A change during the snapshot, which is as large as all that may be written in half an hour.
        change(2)
        let copy = DatabaseCopy(kind: .snapshot, path: "s", at: bench.now.wall, bytes: 1 << 20)
        _ = bench.send(.copied(.snapshot, .success(copy)))
        #expect(!bench.pass(1_700).work.contains("copy snapshot"))
        #expect(bench.pass(110).work.contains("copy snapshot"))
    }

    @Test func `a failed backup raises an alert that the next success ends`() throws {
        var bench = MachineBench { $0.copies = [] }
        _ = bench.pass(300)
        let failed = bench.send(.copied(.backup, .failure(full)))
        let alert = try #require(failed.published.first { $0.topic.text.contains("/alert/") })
        let id = try WireAlert(wireBytes: alert.payload).id
        #expect(!bench.pass(899).work.contains("copy backup"))
        let answered = bench.request(7) {
            $0.answerAlert.alert = id
            $0.answerAlert.action = "retry"
        }
        #expect(answered.work == ["publish delete \(alert.topic.text)", "reply 7", "copy backup"])
        let done = bench.send(
            .copied(.backup, .success(DatabaseCopy(kind: .backup, path: "b", at: bench.now.wall, bytes: 9))))
        #expect(done.published.allSatisfy { $0.topic == .persistenceStatus })
    }

    @Test func `while backups fail, the day’s positions are saved nevertheless`() {
        var bench = MachineBench { $0.copies = [StoreFixture.copy(.snapshot, at: -90_000)] }
        #expect(bench.pass(300).work.contains("copy backup"))
        let failed = bench.send(.copied(.backup, .failure(full)))
        #expect(failed.work.contains("copy snapshot"))
        _ = bench.send(
            .copied(.snapshot, .success(DatabaseCopy(kind: .snapshot, path: "s", at: bench.now.wall, bytes: 1))))
        #expect(!bench.pass(899).work.contains("copy snapshot"))
    }

    @Test func `old replies are removed each hour`() {
        var bench = MachineBench()
        #expect(bench.pass(60).work == ["prune"])
        #expect(bench.pass(4_000).work == [])
        _ = bench.send(.pruned(.success(3)))
        #expect(bench.pass(3_599).work == [])
        #expect(bench.pass(1).work == ["prune"])
    }

    private func recovered() throws -> (MachineBench, WireAlert) {
        let recovery = Recovery(reason: "It was gone.", restored: "b", reaches: StoreFixture.moment())
        let alert = PersistenceAlerts.recovered(recovery, now: StoreFixture.moment())
        var record = WireRecord()
        record.collection = "alert"
        record.key = alert.id
        record.value = alert.wireData
        return (MachineBench { $0.ownRecords = [record] }, alert)
    }

    private func answer(_ alert: String, _ action: String) -> (inout WirePersistenceRequest) -> Void {
        return {
            $0.answerAlert.alert = alert
            $0.answerAlert.action = action
        }
    }

    @Test func `the first answer to an alert wins when it is durable`() throws {
        var (bench, alert) = try recovered()
        let topic = Topic.alert(.persistence, alert.id)
        #expect(bench.machine.retained().contains { $0.topic == topic })
        #expect(bench.request(1, answer(alert.id, "dance")).work == ["refuse 1 invalidArgument"])
        #expect(bench.request(2, answer(alert.id, "dismiss")).work == ["write 1"])
        #expect(bench.request(3, answer(alert.id, "dismiss")).work == [])
        #expect(bench.request(4, answer(alert.id, "retry")).work == [])
        let done = bench.send(.wrote(MachineBench.done(1)))
        #expect(done.work == ["publish delete \(topic.text)", "reply 2", "reply 3", "refuse 4 alreadyAnswered"])
        #expect(bench.request(5, answer(alert.id, "dismiss")).work == ["reply 5"])
        #expect(bench.request(6, answer(alert.id, "retry")).work == ["refuse 6 alreadyAnswered"])
        #expect(bench.request(7, answer("a404", "dismiss")).work == ["refuse 7 notFound"])
        #expect(bench.machine.retained().count == 1)
    }

    @Test func `an answer that can’t be written doesn’t end its alert`() throws {
        var (bench, alert) = try recovered()
        _ = bench.request(1, answer(alert.id, "dismiss"))
        let failed = bench.send(.wrote(StoreBatchResult(results: [.failure(full)], failures: [full])))
        #expect(failed.work.contains("refuse 1 diskFull"))
        #expect(bench.machine.retained().contains { $0.topic == .alert(.persistence, alert.id) })
        #expect(bench.request(2, answer(alert.id, "dismiss")).work == ["write 1"])
    }

    @Test func `damage ends the service and makes the next start check the whole database`() {
        let damage = Failure(code: StorageFailure.damaged, message: "bad page", retry: true)
        for event: PersistenceMachine.Event in [
            .checked(.success(DatabaseDamage(["bad page"]))), .answered(.init(1), .failure(damage)),
            .copied(.backup, .failure(damage)),
            .wrote(StoreBatchResult(results: [.failure(damage)], failures: [damage])),
        ] {
            var bench = MachineBench()
            let effects = bench.send(event).work
            #expect(effects.suffix(2) == ["suspect", "stop databaseDamaged"])
            #expect(bench.request(9) { $0.commit.owner = "queue" }.isEmpty)
        }
    }

    @Test func `a damaged search index is rebuilt once`() {
        let damage = Failure(code: StorageFailure.searchDamaged, message: "index", retry: true)
        var bench = MachineBench()
        _ = bench.send(.started)
        #expect(bench.send(.answered(.init(1), .failure(damage))).work == ["refuse 1 searchIndexDamaged", "rebuild"])
        #expect(bench.send(.answered(.init(2), .failure(damage))).work == ["refuse 2 searchIndexDamaged"])
    }

    @Test func `stopping finishes running work and saves changes`() {
        var bench = MachineBench()
        _ = bench.request(1) { $0.commit.owner = "queue" }
        _ = bench.request(2) { $0.episodes = WireEpisodesQuery() }
        #expect(bench.send(.stopping).work == [])
        #expect(bench.request(3) { $0.commit.owner = "queue" }.work == ["refuse 3 unavailable"])
        #expect(bench.send(.answered(.init(2), .success(WirePersistenceReply()))).work == ["reply 2"])
        let wrote = bench.send(.wrote(MachineBench.done(1) { $0.changed = .snapshot }))
        #expect(wrote.work == ["reply 1", "copy snapshot"])
        #expect(bench.send(.copied(.snapshot, .failure(full))).work == ["stop "])
        var idle = MachineBench()
        #expect(idle.send(.stopping).work == ["stop "])
    }

    @Test func `a large database is read completely once the service is running`() {
        var bench = MachineBench { $0.needsCheck = true }
        #expect(!bench.send(.started).work.contains("check"))
        #expect(bench.pass(60).work.contains("check"))
        #expect(!bench.pass(60).work.contains("check"))
        #expect(bench.send(.checked(.success(nil))).work == ["write 1"], "its time is recorded")
        _ = bench.send(.wrote(MachineBench.done(1)))
        let week = Int64(7 * 86_400)
        #expect(!bench.pass(week - 1).work.contains("check"))
        #expect(bench.pass(1).work.contains("check"))
    }
}
