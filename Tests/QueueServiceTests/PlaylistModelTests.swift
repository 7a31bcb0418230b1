import OwnerHarness
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import QueueService

/// Tests random commands to a playlist against a model, whose every revision can be restored.
@Suite struct PlaylistModelTests {
    /// A playlist as an array of episode numbers.
    private struct Model {
        /// The numbers of the episodes in the library.
        static let library = Array(1...30)

        var items: [Int] = []
        /// The items after each revision.
        var revisions: [UInt64: [Int]] = [:]
        /// The items before and after each change that can be undone or redone.
        var changes: [(before: [Int], after: [Int])] = []
        var undone = 0

        /// Applies a change that the history contains; returns whether there was one.
        mutating func edit(_ new: [Int]) -> Bool {
            guard new != items else { return false }
            changes.removeLast(undone)
            undone = 0
            changes.append((items, new))
            if changes.count > QueueHistory.limit { changes.removeFirst() }
            items = new
            return true
        }

        mutating func undo() -> Bool {
            guard undone < changes.count else { return false }
            undone += 1
            items = changes[changes.count - undone].before
            return true
        }

        mutating func redo() -> Bool {
            guard undone > 0 else { return false }
            items = changes[changes.count - undone].after
            undone -= 1
            return true
        }

        mutating func add(_ numbers: [Int], next: Bool) -> Bool {
            var new: [Int] = []
            for number in numbers where (next || !items.contains(number)) && !new.contains(number) {
                new.append(number)
            }
            return edit(next ? new + items.filter { !new.contains($0) } : items + new)
        }

        /// Moves items to an index, counted without them; they keep their order.
        mutating func move(_ moved: Set<Int>, to index: Int) -> Bool {
            var rest = items.filter { !moved.contains($0) }
            rest.insert(contentsOf: items.filter { moved.contains($0) }, at: index)
            return edit(rest)
        }
    }

    private enum Expectation: Equatable {
        case changed(Bool)
        case refused(FailureCode?)
    }

    /// Creates a random command, applies it to the model, and returns the expected result.
    private func step(_ model: inout Model, _ random: inout SeededGenerator) -> (WirePlaylistRequest, Expectation) {
        var request = WirePlaylistRequest()
        request.playlist = "p"
        func some(of numbers: [Int], _ random: inout SeededGenerator) -> [Int] {
            (0...random.below(5)).compactMap { _ in numbers.randomElement(using: &random) }
        }
        switch random.below(20) {
        case 0...4:
            let numbers = some(of: Model.library, &random)
            request.add.episodes = numbers.map(QueueRig.episode)
            request.add.next = random.below(3) == 0
            return (request, .changed(model.add(numbers, next: request.add.next)))
        case 5...7:
            let numbers = some(of: Model.library, &random)
            request.remove.episodes = numbers.map(QueueRig.episode)
            return (request, .changed(model.edit(model.items.filter { !numbers.contains($0) })))
        case 8...11 where !model.items.isEmpty:
            return move(&request, &model, &random)
        case 12:
            request.sort.by = .title
            request.sort.descending = random.below(2) == 0
            let sorted = model.items.sorted { request.sort.descending ? $0 > $1 : $0 < $1 }
            return (request, .changed(model.edit(sorted)))
        case 13 where random.below(4) == 0:
            request.clear = WireClearQueue()
            return (request, .changed(model.edit([])))
        case 14...16:
            request.undo = WireUndo()
            return (request, .changed(model.undo()))
        case 17, 18:
            request.redo = WireRedo()
            return (request, .changed(model.redo()))
        default:
            request.ifRevision = 1_000_000
            request.clear = WireClearQueue()
            return (request, .refused(FailureCode.revisionMismatch))
        }
    }

    private func move(
        _ request: inout WirePlaylistRequest, _ model: inout Model, _ random: inout SeededGenerator
    ) -> (WirePlaylistRequest, Expectation) {
        let moved = Set((0...random.below(3)).compactMap { _ in model.items.randomElement(using: &random) })
        request.move.texts = moved.sorted().map(QueueRig.episode)
        let rest = model.items.filter { !moved.contains($0) }
        let target = random.below(rest.count + 2)
        if random.below(2) == 0 {
            request.move.index = UInt32(target)
            guard target <= rest.count else { return (request, .refused(FailureCode.notApplicable)) }
            return (request, .changed(model.move(moved, to: target)))
        }
        guard target < rest.count else {
            request.move.beforeText = QueueRig.episode(moved.min() ?? 0)
            return (request, .refused(FailureCode.notApplicable))
        }
        if random.below(2) == 0 {
            request.move.beforeText = QueueRig.episode(rest[target])
            return (request, .changed(model.move(moved, to: target)))
        }
        request.move.afterText = QueueRig.episode(rest[target])
        return (request, .changed(model.move(moved, to: target + 1)))
    }

    /// Restores a random revision of the history, and checks that it has the items which it had.
    private func restore(_ rig: QueueRig, _ model: inout Model, _ random: inout SeededGenerator) throws {
        let history = try #require(rig.send { $0.playlist = .with { ($0.playlist, $0.history.limit) = ("p", 100) } })
        let revisions = try history.get().history.map(\.revision)
        guard let revision = revisions.randomElement(using: &random) else { return }
        let items = try #require(model.revisions[revision])
        let expected = model.edit(items)
        let result = rig.send { $0.playlist = .with { ($0.playlist, $0.restore.revision) = ("p", revision) } }
        #expect(try #require(result).get().changed == expected)
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `random commands to a playlist have the results of the model`(seed: UInt64) throws {
        let rig = QueueRig()
        rig.send { $0.playlist = .with { ($0.playlist, $0.create.title) = ("p", "P") } }
        var random = SeededGenerator(seed: seed)
        var model = Model()
        for number in 0..<1_500 {
            let before = try #require(rig.machine.playlists["p"]).queue.revision
            if random.below(25) == 0 {
                try restore(rig, &model, &random)
            } else {
                let (request, expected) = step(&model, &random)
                let result = try #require(rig.send { $0.playlist = request })
                let found: Expectation
                switch result {
                case .success(let reply): found = .changed(reply.changed)
                case .failure(let failure): found = .refused(failure.known)
                }
                #expect(found == expected, "seed \(seed), command \(number): \(request)")
            }
            if random.below(60) == 0 { rig.restart() }
            let playlist = try #require(rig.machine.playlists["p"])
            let items = playlist.queue.entries.compactMap { Int($0.episode.dropFirst()).map { $0 - 1_000 } }
            try #require(items == model.items, "seed \(seed), command \(number)")
            let revision = playlist.queue.revision
            if revision != before { model.revisions[revision] = items }
            #expect(revision == before || revision == before + 1, "seed \(seed), command \(number)")
        }
    }
}
