import NIOConcurrencyHelpers
import PodcastModel
import ProcessKit
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

@testable import BusKit
@testable import OwnerKit

/// An owner without sockets, whose scripted database answers or is unavailable.
struct OwnerTrial {
    typealias Runtime = OwnerRuntime<EchoMachine>

    var runtime: Runtime
    var database: ScriptedDatabase
    var now = Moment(monotonic: MonotonicTime(nanoseconds: 1_000_000_000), wall: Timestamp(milliseconds: 1))
    /// The queries without an answer.
    var waiting: [(asking: OutgoingRequest, answered: @Sendable (Result<[UInt8], Failure>) -> Runtime.Input)] = []
    var logs: [String] = []
    var replies: [(ticket: ReplyTicket, id: RequestID, result: Result<[UInt8], Failure>)] = []
    var published: [[Publication]] = []
    var actions: [EchoMachine.Action] { performed.withLockedValue { $0 } }
    private let performed = NIOLockedValueBox<[EchoMachine.Action]>([])
    var readies = 0
    var stop: Failure??
    var ticket: UInt64 = 0
    var epoch: UInt64 = 5

    init(_ database: ScriptedDatabase = ScriptedDatabase(), generation: UInt32 = 1) {
        self.database = database
        runtime = OwnerRuntime(EchoMachine(), generation: generation, seed: UInt64(generation)) {
            [performed] action in performed.withLockedValue { $0.append(action) }
        }
    }

    /// Returns an owner that is ready in epoch 5.
    static func serving(_ database: ScriptedDatabase = ScriptedDatabase(), generation: UInt32 = 1) -> OwnerTrial {
        var trial = OwnerTrial(database, generation: generation)
        trial.handle(.started)
        trial.handle(.epochBegan(epoch: 5))
        trial.serve()
        return trial
    }

    mutating func handle(_ event: BusEvent) { handle(.bus(event)) }

    mutating func handle(_ event: Runtime.Event) {
        perform(runtime.handle(event, now: now) + runtime.finish(now: now))
    }

    mutating func perform(_ effects: [Runtime.Effect]) {
        for effect in effects {
            switch effect {
            case .publish(let publications): published.append(publications)
            case .reply(let ticket, let id, let result): replies.append((ticket, id, result))
            case .ask(let asking, let input): waiting.append((asking, input))
            case .ready: readies += 1
            case .run(let body): body()
            case .log(_, let line): logs.append(line)
            case .stop(let failure): stop = .some(failure)
            }
        }
    }

    /// Processes the oldest query in the database and returns the answer.
    mutating func take() -> Runtime.Event? {
        guard !waiting.isEmpty else { return nil }
        let (asking, answered) = waiting.removeFirst()
        guard let request = try? WirePersistenceRequest(wireBytes: asking.payload) else { return nil }
        return .input(answered(database.answer(request).map(\.wireBytes)))
    }

    /// Answers queries until none is pending.
    mutating func serve() {
        while let answer = take() { handle(answer) }
    }

    mutating func command(_ word: String, id: RequestID = .random(), mayBeRepeat: Bool = false) {
        ticket += 1
        handle(
            .command(
                IncomingCommand(
                    ticket: ReplyTicket(epoch: epoch, number: ticket),
                    command: Command(
                        id: id, origin: "test", payload: Array(word.utf8), mayBeRepeat: mayBeRepeat),
                    deadline: now.monotonic.advanced(by: .seconds(10)))))
    }

    mutating func newBus() {
        epoch += 1
        handle(.epochBegan(epoch: epoch))
    }

    mutating func pass(_ duration: Duration) {
        now.monotonic = now.monotonic.advanced(by: duration)
        handle(.timerFired)
    }

    var words: [String] { published.last?.map { String(decoding: $0.payload, as: UTF8.self) } ?? [] }
    var codes: [FailureCode?] {
        replies.map { if case .failure(let failure) = $0.result { failure.known } else { nil } }
    }
}

struct OwnerRuntimeTests {
    private let id = RequestID(high: 1, low: 1)

    @Test func `an owner is ready once its records are restored and its values are put`() {
        var database = ScriptedDatabase()
        for (index, word) in ["a", "b", "c", "d", "e"].enumerated() {
            database.records[String(index + 1_000)] = Array(word.utf8)
        }
        var trial = OwnerTrial(database)
        trial.handle(.started)
        trial.handle(.epochBegan(epoch: 5))
        #expect(trial.readies == 0)
        trial.command("too early")
        #expect(trial.codes == [.unavailable])
        trial.serve()
        #expect(trial.readies == 1)
        #expect(trial.words == ["a b c d e"])
    }

    @Test func `a record that can’t be decoded is logged and the others are restored`() {
        var database = ScriptedDatabase()
        for (index, word) in ["a", "unreadable", "c"].enumerated() {
            database.records[String(index + 1_000)] = Array(word.utf8)
        }
        let trial = OwnerTrial.serving(database)
        #expect(trial.words == ["a c"])
        #expect(trial.logs.count == 1 && trial.logs.first?.contains("word/1001 is unreadable") == true)
    }

    @Test(arguments: [nil, true, false]) func `a service looks up only requests that may be repeats`(mayBeRepeat: Bool?)
    {
        var trial = OwnerTrial.serving()
        func call(_ request: RequestID?) -> OwnerCall<String> {
            OwnerCall("q", to: .playback, payload: [1], request: request, mayBeRepeat: mayBeRepeat)
        }
        trial.handle(.input(.machine(.call(call(nil)))))
        trial.handle(.input(.machine(.call(call(id)))))
        #expect(trial.waiting.map(\.asking.mayBeRepeat) == [mayBeRepeat ?? false, mayBeRepeat ?? true])
        trial.handle(.input(trial.waiting[1].answered(.success(Array("!".utf8)))))
        #expect(trial.runtime.machine.answers == ["q!"])
    }

    @Test func `a lookup of episodes that is answered in pages is continued`() throws {
        var trial = OwnerTrial.serving()
        func request(_ ids: [String]) -> [UInt8] {
            WirePersistenceRequest.with { $0.episodesByID.ids = ids }.wireBytes
        }
        func page(_ ids: [String], answered: UInt32 = 0) -> Result<[UInt8], Failure> {
            .success(
                WirePersistenceReply.with {
                    $0.episodes.episodes = ids.map { id in .with { $0.id = id } }
                    $0.episodes.answered = answered
                }.wireBytes)
        }
        let call = OwnerCall("", to: .persistence, payload: request(["a", "b", "missing", "c"]))
        trial.handle(.input(.machine(.call(call))))
        trial.handle(.input(trial.waiting[0].answered(page(["a", "b"], answered: 2))))
        #expect(trial.runtime.machine.answers.isEmpty)
        #expect(trial.waiting.map(\.asking.payload) == [call.payload, request(["missing", "c"])])
        trial.handle(.input(trial.waiting[1].answered(page(["c"]))))
        let answer = try #require(trial.runtime.machine.answers.first)
        let reply = try WirePersistenceReply(wireBytes: Array(answer.utf8))
        #expect(reply.episodes.episodes.map(\.id) == ["a", "b", "c"])
        trial.handle(.input(.machine(.call(call))))
        trial.handle(.input(trial.waiting[2].answered(.failure(Failure(.unavailable, "")))))
        #expect(trial.waiting.count == 3 && trial.runtime.machine.answers.count == 1)
    }

    @Test func `setting an active timer reschedules it, and nil cancels it`() {
        var trial = OwnerTrial.serving()
        func set(_ timer: String, in wait: Duration?) {
            let time = wait.map { trial.now.monotonic.advanced(by: $0) }
            trial.handle(.input(.machine(.timer(timer, time))))
        }
        for wait in [1, 3, 3] { set("moved", in: .seconds(wait)) }
        set("cancelled", in: .seconds(1))
        set("cancelled", in: nil)
        trial.pass(.seconds(2))
        #expect(trial.actions.isEmpty)
        trial.pass(.seconds(1))
        #expect(trial.actions == [.heard("timer moved")])
        trial.pass(.seconds(10))
        #expect(trial.actions.count == 1)
    }

    @Test func `a command is answered when it is durable`() {
        var trial = OwnerTrial.serving()
        trial.command("a")
        #expect(trial.replies.isEmpty)
        #expect(trial.published.count == 1)
        trial.serve()
        #expect(trial.replies.map(\.result) == [.success([1])])
        #expect(trial.words == ["a"])
        #expect(trial.database.words == ["a"])
    }

    @Test func `a repeat of a running request joins it and takes effect once`() {
        var trial = OwnerTrial.serving()
        trial.command("a", id: id)
        trial.command("a", id: id, mayBeRepeat: true)
        trial.serve()
        #expect(trial.replies.map(\.ticket.number) == [1, 2])
        #expect(trial.replies.map(\.result) == [.success([1]), .success([1])])
        #expect(trial.database.words == ["a"])
    }

    @Test func `a repeat of a finished request receives the same reply`() {
        var trial = OwnerTrial.serving()
        trial.command("a", id: id)
        trial.serve()
        trial.command("a", id: id, mayBeRepeat: true)
        trial.serve()
        #expect(trial.replies.map(\.result) == [.success([1]), .success([1])])
        #expect(trial.database.words == ["a"])
    }

    @Test(arguments: [true, false])
    func `a repeat in the next process receives the stored reply`(saysThatItIsARepeat: Bool) {
        var trial = OwnerTrial.serving()
        trial.command("a", id: id)
        trial.serve()
        var next = OwnerTrial.serving(trial.database, generation: 2)
        next.command("a", id: id, mayBeRepeat: saysThatItIsARepeat)
        next.serve()
        #expect(next.replies.map(\.result) == [.success([1])])
        #expect(next.database.words == ["a"])
        next.command("b")
        next.serve()
        #expect(next.database.words == ["a", "b"])
    }

    @Test func `the repeat of a request receives the reply that was lost with the bus`() {
        var trial = OwnerTrial.serving()
        trial.command("a", id: id)
        let answer = trial.take()
        trial.newBus()
        // The commit’s outcome is unknown: the owner isn’t ready yet.
        #expect(trial.readies == 1)
        if let answer { trial.handle(answer) }
        #expect(trial.replies.isEmpty)
        #expect(trial.readies == 2)
        #expect(trial.words == ["a"])
        trial.command("a", id: id, mayBeRepeat: true)
        #expect(trial.replies.map(\.ticket.epoch) == [6])
        #expect(trial.replies.map(\.result) == [.success([1])])
        #expect(trial.database.words == ["a"])
    }

    @Test func `only durable values are put on a new bus`() {
        var trial = OwnerTrial.serving()
        trial.database.refusedWords["bad"] = Failure(.diskFull, "full")
        trial.command("a")
        trial.command("bad")
        let answer = trial.take()
        trial.newBus()
        if let answer { trial.handle(answer) }
        // The second one is in flight now and may be refused.
        #expect(trial.readies == 1)
        trial.serve()
        #expect(trial.readies == 2)
        #expect(trial.words == ["a"])
    }

    @Test func `a reply that builds on a change waits until that is durable`() {
        var trial = OwnerTrial.serving()
        trial.command("a")
        trial.command("count")
        #expect(trial.replies.isEmpty)
        trial.serve()
        #expect(trial.replies.map(\.result) == [.success([1]), .success([1])])
        trial.command("count")
        #expect(trial.replies.last?.result == .success([1]))
    }

    @Test func `a reply that built on a refused change fails and can be retried`() {
        var trial = OwnerTrial.serving()
        trial.database.refusedWords["bad"] = Failure(.diskFull, "full")
        trial.command("bad")
        trial.command("count", id: id)
        trial.serve()
        #expect(trial.codes.contains(.diskFull) && trial.codes.contains(.busy))
        trial.command("count", id: id, mayBeRepeat: true)
        trial.serve()
        #expect(trial.replies.last?.result == .success([0]))
    }

    @Test func `a durable change is reported as saved even if a later one can’t be saved`() {
        var trial = OwnerTrial.serving()
        trial.database.refusedWords["answer alone"] = Failure(.diskFull, "full")
        trial.command("answer alone", id: id)
        trial.command("later")
        trial.serve()
        #expect(trial.replies.first { $0.id == id }?.result == .success([0]))
        #expect(trial.codes == [nil, .busy])
    }

    @Test func `a refusal reports the effect that remains although it isn’t saved`() {
        var trial = OwnerTrial.serving()
        trial.database.refusedWords["paused"] = Failure(.diskFull, "The disk is full.")
        trial.command("paused")
        trial.serve()
        #expect(
            trial.replies.map(\.result) == [.failure(Failure(.notSaved, "Paused, but not saved: The disk is full."))])
        #expect(trial.runtime.machine.words.current.isEmpty)
    }

    @Test func `a reply that waits for an unavailable database becomes “not saved” after five seconds`() {
        var trial = OwnerTrial.serving()
        trial.command("a")
        trial.command("count")
        trial.pass(.seconds(5))
        #expect(trial.codes == [.notSaved, .notSaved])
    }

    @Test func `a refusal rolls back all later transactions`() {
        var trial = OwnerTrial.serving()
        trial.database.refusedWords["bad"] = Failure(.diskFull, "full")
        for word in ["a", "b", "bad", "d"] { trial.command(word) }
        trial.serve()
        #expect(trial.codes == [nil, nil, .diskFull, .busy])
        #expect(trial.runtime.machine.words.current == ["a", "b"])
        #expect(trial.words == ["a b"])
        trial.command("c")
        trial.serve()
        #expect(trial.database.words == ["a", "b", "c"])
        #expect(trial.runtime.machine.words.isSettled)
    }

    @Test func `commits in flight when the database crashes are repeated and take effect once`() {
        var trial = OwnerTrial.serving()
        trial.command("a")
        // The database applied it and crashed before it answered: the same request is sent again.
        let question = trial.waiting[0]
        _ = trial.take()
        trial.waiting.append(question)
        trial.command("b")
        trial.serve()
        #expect(trial.codes == [nil, nil])
        #expect(trial.database.words == ["a", "b"])
        #expect(trial.database.commits == 2)
    }

    @Test func `a restored backup is brought up to date by a running owner`() {
        var trial = OwnerTrial.serving()
        trial.command("a")
        trial.serve()
        var backup = trial.database
        trial.command("b")
        trial.serve()
        backup.incarnation = "two"
        trial.database = backup
        trial.command("c")
        trial.serve()
        #expect(trial.codes == [nil, nil, nil])
        #expect(trial.database.words == ["a", "b", "c"])
    }

    @Test func `a value whose delta the bus refused is put whole once its changes are durable`() {
        var trial = OwnerTrial.serving()
        trial.command("a")
        trial.published = []
        trial.handle(.rejected(Publication(.delta, EchoMachine.topic, []), code: "tooManyDeltas"))
        #expect(trial.published.isEmpty)
        trial.serve()
        let puts = trial.published.flatMap { $0 }.filter { $0.kind == .put && $0.topic == EchoMachine.topic }
        #expect(puts.last?.payload == Array("a".utf8))
        #expect(trial.published.count == 2)
        trial.handle(.rejected(Publication(.delta, EchoMachine.topic, []), code: "tooManyDeltas"))
        #expect(trial.published.count == 3)
    }

    @Test func `a value that is too large is reported once and put again only after a minute`() {
        var trial = OwnerTrial.serving()
        trial.published = []
        let put = Publication(.put, EchoMachine.topic, [UInt8](repeating: 0, count: 2 << 20))
        for _ in 0..<100 {
            trial.handle(.rejected(put, code: "tooLarge"))
            trial.handle(.rejected(Publication(.delta, EchoMachine.topic, []), code: "noPut"))
        }
        let published = trial.published.flatMap { $0 }
        #expect(published.map(\.kind) == [.put] && published[0].topic.text.hasPrefix("stream/queue/alert/"))
        trial.published = []
        trial.pass(.seconds(59))
        #expect(trial.published.isEmpty)
        trial.pass(.seconds(2))
        #expect(trial.published.flatMap { $0 }.map(\.topic) == [EchoMachine.topic])
        trial.handle(.rejected(put, code: "tooLarge"))
        #expect(trial.published.count == 1)
        // The alert is removed once the value is accepted.
        trial.pass(.seconds(61))
        trial.published = []
        trial.pass(.seconds(61))
        #expect(trial.published.flatMap { $0 }.map(\.kind) == [.delete])
        trial.published = []
        trial.pass(.seconds(61))
        #expect(trial.published.isEmpty)
    }

    @Test func `a request with a text that is too long is refused before it takes effect`() {
        var trial = OwnerTrial.serving()
        var request = WireQueueRequest()
        request.queue = String(repeating: "q", count: 2 << 20)
        let ticket = ReplyTicket(epoch: trial.epoch, number: 1)
        let command = Command(id: id, origin: "test", payload: request.wireBytes)
        let deadline = trial.now.monotonic.advanced(by: .seconds(10))
        trial.handle(.command(IncomingCommand(ticket: ticket, command: command, deadline: deadline)))
        #expect(trial.codes == [.tooLarge])
        #expect(trial.waiting.isEmpty && trial.runtime.machine.words.current.isEmpty)
    }

    @Test func `a publication precedes the other effects of its event`() {
        var trial = OwnerTrial.serving()
        let first = trial.runtime.handle(.input(.machine(.say("fact"))), now: trial.now)
        #expect(first.count == 1)
        guard case .publish? = first.first else {
            Issue.record("\(first)")
            return
        }
        trial.perform(trial.runtime.finish(now: trial.now))
        #expect(trial.actions == [.heard("fact")])
        #expect(trial.runtime.finish(now: trial.now).isEmpty)
        // Inputs that arrive in between are handled after the rest.
        _ = trial.runtime.handle(.input(.machine(.say("one"))), now: trial.now)
        trial.perform(Array(trial.runtime.handle(.bus(.timerFired), now: trial.now).prefix(1)))
        #expect(trial.actions == [.heard("fact"), .heard("one")])
    }

    @Test func `a restarted database is queried for its incarnation even without a pending commit`() {
        var trial = OwnerTrial.serving()
        trial.handle(.status(.persistence, ready: 1))
        trial.command("a")
        trial.serve()
        trial.handle(.status(.persistence, ready: nil))
        trial.handle(.status(.persistence, ready: 1))
        trial.handle(.status(.playback, ready: 9))
        #expect(trial.waiting.isEmpty)
        trial.database = ScriptedDatabase()
        trial.database.incarnation = "two"
        trial.handle(.status(.persistence, ready: 2))
        #expect(trial.waiting.count == 1)
        trial.serve()
        #expect(trial.database.words == ["a"])
        #expect(trial.runtime.machine.replacements == 1)
    }

    @Test func `a database that is replaced while the records are loaded is detected`() throws {
        var trial = OwnerTrial()
        trial.handle(.started)
        trial.handle(.epochBegan(epoch: 5))
        trial.handle(.status(.persistence, ready: 1))
        let loaded = trial.take()
        trial.handle(try #require(loaded))
        trial.database.incarnation = "two"
        trial.handle(.status(.persistence, ready: 2))
        trial.serve()
        #expect(trial.runtime.machine.replacements == 1)
        #expect(trial.readies == 1)
    }

    @Test func `a restored backup on a full disk is brought up to date once there is space`() {
        var trial = OwnerTrial.serving()
        trial.command("a")
        trial.serve()
        var backup = trial.database
        trial.command("b")
        trial.serve()
        backup.incarnation = "two"
        backup.refusedWords["b"] = Failure(.diskFull, "full")
        trial.database = backup
        trial.command("c")
        trial.serve()
        #expect(trial.codes == [nil, nil, .diskFull])
        #expect(trial.database.words == ["a"])
        trial.pass(.seconds(5))
        trial.serve()
        #expect(trial.database.words == ["a"])
        trial.database.refusedWords = [:]
        trial.pass(.seconds(5))
        trial.serve()
        #expect(trial.database.words == ["a", "b"])
    }

    @Test func `a client receives “not saved” while the database is unavailable, and the change is kept`() {
        var trial = OwnerTrial.serving()
        trial.command("a", id: id)
        trial.pass(.seconds(5))
        #expect(trial.codes == [.notSaved])
        trial.serve()
        #expect(trial.words == ["a"])
        trial.command("a", id: id, mayBeRepeat: true)
        #expect(trial.replies.last?.result == .success([1]))
    }

    @Test func `a process whose late commit is fenced stops`() {
        var trial = OwnerTrial.serving()
        var next = OwnerTrial.serving(trial.database, generation: 2)
        trial.database = next.database
        trial.command("late")
        trial.serve()
        guard case .some(.some(let failure)) = trial.stop else {
            Issue.record("it goes on")
            return
        }
        #expect(failure.known == .fenced)
        next.command("a")
        next.serve()
        #expect(next.database.words == ["a"])
    }

    @Test func `stopping waits for the last commit`() {
        var trial = OwnerTrial.serving()
        trial.command("a")
        trial.handle(.stopping)
        #expect(trial.runtime.machine.stopped)
        #expect(trial.stop == nil)
        trial.serve()
        #expect(trial.stop == .some(nil))
        #expect(trial.database.words == ["a"])
    }

    @Test func `stopping waits for the shell’s last reports for a limited time`() {
        for isHeard in [true, false] {
            var trial = OwnerTrial.serving()
            trial.runtime.machine.hasStopped = false
            trial.handle(.stopping)
            #expect(trial.stop == nil)
            if isHeard {
                trial.runtime.machine.hasStopped = true
                trial.handle(.input(.machine(.say("last"))))
            } else {
                trial.pass(.milliseconds(2_500))
            }
            #expect(trial.stop == .some(nil))
        }
    }

    @Test func `stopping doesn’t wait for a database that isn’t running`() {
        var trial = OwnerTrial.serving()
        trial.command("a")
        trial.handle(.stopping)
        trial.pass(.milliseconds(2_500))
        #expect(trial.stop == .some(nil))
    }

    @Test func `the retained values of another owner, and their deletion, are reported once it is ready`() {
        var trial = OwnerTrial.serving()
        var bus = ModelBus(epoch: 5)
        let put = bus.publish(.put, .playbackState, [1])
        var replica = Replica()
        replica.replace(at: StreamPosition(epoch: 5, sequence: 1), ready: [:], entries: [put])
        trial.handle(.update(.snapshot(replica)))
        #expect(trial.runtime.machine.observed.isEmpty)
        trial.handle(.update(.event(bus.makeReady(.playback))))
        #expect(trial.runtime.machine.observed == [put])
        trial.handle(.update(.event(bus.publish(.event, .podcast("p1")))))
        #expect(trial.runtime.machine.observed.count == 1)
        var empty = Replica()
        empty.replace(at: StreamPosition(epoch: 5, sequence: 9), ready: [.playback: 1], entries: [])
        trial.handle(.update(.snapshot(empty)))
        #expect(trial.runtime.machine.observed.last?.header.kind == .delete)
    }

    @Test func `derived request IDs are equal for the same step only`() {
        #expect(id.derived("load") == id.derived("load"))
        #expect(id.derived("load") != id.derived("save"))
        let fixed = RequestID(high: 0x0001_0203_0405_0607, low: 0x0809_0a0b_0c0d_0e0f).derived("load")
        #expect(fixed.description == "8cf31aed3b578e0dac5c45afda52d9b6")
    }
}
