import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// An owner whose state is a list of words: a command's payload is a word, which is committed, published whole under
/// `stream/queue/words` and answered with the number of words.
struct EchoMachine: OwnerMachine {
    enum Input: Sendable, Hashable { case say(String) }
    enum Action: Sendable, Hashable { case heard(String) }

    static let owner = ServiceName.queue
    static let observes = ["stream/playback/"]
    static let topic = Topic.stream(.queue, "words")

    var words = SpeculativeState<[String]>([])
    var lastTransaction: UInt64 = 0
    var commands: [TransactionID: RequestID] = [:]
    /// Transactions that store an answer alone: what it reports is durable already.
    var answersAlone: Set<TransactionID> = []
    var committed: [TransactionID] = []
    var refused: [TransactionID] = []
    var observed: [StreamEvent] = []
    private(set) var replacements = 0
    var answers: [String] = []
    var stopped = false
    var hasStopped = true

    mutating func restore(_ records: [StoredRecord], now: Moment) -> [OwnerEffect<Action>] {
        words = SpeculativeState(records.map { String(decoding: $0.value, as: UTF8.self) })
        return []
    }

    func retained(now: Moment) -> [Publication] { [put] }

    func everything() -> [WireChange] { words.current.enumerated().map(Self.change) }

    mutating func handle(_ event: OwnerEvent<Input>, now: Moment) -> [OwnerEffect<Action>] {
        switch event {
        case .command(let command): return commanded(command)
        case .committed(let id):
            committed.append(id)
            words.committed(id)
        case .refused(let id, let failure):
            refused.append(id)
            words.refused(id)
            if let request = commands[id], failure.code != "duplicateRequest" {
                return [.reply(request, answersAlone.contains(id) ? .success([0]) : .failure(failure))]
            }
        case .answered(let id, let result):
            if case .success(let payload) = result {
                answers.append(id.text + String(decoding: payload, as: UTF8.self))
            }
        case .observed(let event): observed.append(event)
        case .timer(let name): return [.perform(.heard("timer \(name.text)"))]
        case .input(.say(let word)): return [.perform(.heard(word)), .publish([put])]
        case .databaseReplaced: replacements += 1
        case .stopping: stopped = true
        }
        return []
    }

    private mutating func commanded(_ command: Command) -> [OwnerEffect<Action>] {
        let word = String(decoding: command.payload, as: UTF8.self)
        if word == "count" { return [.reply(command.id, .success([UInt8(words.current.count)]))] }
        lastTransaction += 1
        let id = TransactionID(lastTransaction)
        commands[id] = command.id
        if word == "answer alone" { answersAlone.insert(id) }
        words.apply(id) { $0.append(word) }
        let count = words.current.count
        return [
            .commit(
                Transaction(
                    id: id, changes: [Self.change(count - 1, word)], publications: [put],
                    answering: (command.id, [UInt8(count)])))
        ]
    }

    private static func change(_ index: Int, _ word: String) -> WireChange {
        var change = WireChange()
        change.put.collection = "word"
        change.put.key = String(index + 1_000)
        change.put.value.append(contentsOf: Array(word.utf8))
        return change
    }

    private var put: Publication {
        Publication(.put, Self.topic, Array(words.current.joined(separator: " ").utf8))
    }
}
