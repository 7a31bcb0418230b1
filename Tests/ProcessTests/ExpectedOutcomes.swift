import PodcastModel
import Testing

/// What is known about the results of commands to a fleet whose processes are killed.
struct ExpectedOutcomes: Sendable {
    /// The expected state of a thing that commands add and remove, or mark and unmark.
    enum State: Sendable, Hashable {
        case present
        case absent
        /// A command for it had no known outcome.
        case unknown
    }

    /// A command without a known outcome for several things, which changed all of them or none.
    private struct Group: Sendable {
        let before: [String: State]
        let after: State
    }

    private(set) var states: [String: State] = [:]
    /// The number of acknowledged commands that changed something.
    private(set) var changes = 0
    /// The number of commands whose outcome is unknown.
    private(set) var unknown = 0
    /// The refusals that were not expected.
    private(set) var failures: [Failure] = []
    private var groups: [Group] = []

    func state(_ thing: String) -> State { states[thing] ?? .absent }

    /// Records the outcome of a command for some things.
    ///
    /// - Parameters:
    ///   - outcome: whether the command changed anything, or why it was refused.
    ///   - state: the state of the things after a successful command.
    mutating func record(_ outcome: Result<Bool, Failure>, _ things: [String], then state: State) {
        switch outcome {
        case .success(let changed):
            if changed { changes += 1 }
            set(things, state)
        case .failure(let error):
            switch error.known {
            case .outcomeUnknown:
                unknown += 1
                let before = Dictionary(things.map { ($0, self.state($0)) }) { first, _ in first }
                set(things, .unknown)
                if !before.values.contains(.unknown) { groups.append(Group(before: before, after: state)) }
            case .unavailable, .busy, .lostInFlight, .expired:
                // The refusal is final: nothing has changed.
                break
            case .notFound where things.contains { self.state($0) == .unknown }, .notApplicable:
                break
            default:
                failures.append(error)
            }
        }
    }

    private mutating func set(_ things: [String], _ state: State) {
        for thing in things { states[thing] = state }
        groups.removeAll { group in things.contains { group.before[$0] != nil } }
    }

    /// Checks the things that are present in the end, each of which must be there once.
    func check(_ present: [String], _ name: Comment = "", sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(Set(present).count == present.count, name, sourceLocation: sourceLocation)
        let found = differences(from: Set(present))
        #expect(found.isEmpty, "\(name) \(found.joined(separator: "; "))", sourceLocation: sourceLocation)
        #expect(failures.isEmpty, name, sourceLocation: sourceLocation)
    }

    /// Returns descriptions of the things that are not as expected.
    private func differences(from present: Set<String>) -> [String] {
        let wrong = states.filter { thing, state in
            state != .unknown && present.contains(thing) != (state == .present)
        }
        let halves = groups.filter { group in
            let isDone = group.before.keys.allSatisfy { present.contains($0) == (group.after == .present) }
            let isUndone = group.before.allSatisfy { present.contains($0.key) == ($0.value == .present) }
            return !isDone && !isUndone
        }
        return wrong.map { "\($0.key) should be \($0.value)" } + halves.map { "\($0.before.keys.sorted()) half done" }
    }
}
