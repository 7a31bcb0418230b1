import PodcastModel
import Testing

@testable import QueueService

struct ChunkedArrayTests {
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `a sequence of changes has the same effect as on an array, and no effect on copies`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var plain = Array(0..<Int.random(in: 0...1_000, using: &random))
        var chunked = ChunkedArray(plain)
        var copies: [(plain: [Int], chunked: ChunkedArray<Int>)] = []
        for step in 0..<2_000 {
            switch Int.random(in: 0..<5, using: &random) {
            case 0, 1:
                let place = Bool.random(using: &random) ? plain.count : Int.random(in: 0...plain.count, using: &random)
                plain.insert(step, at: place)
                chunked.insert(step, at: place)
            case 2 where !plain.isEmpty:
                let place = Int.random(in: 0..<plain.count, using: &random)
                #expect(plain.remove(at: place) == chunked.remove(at: place))
            case 3 where !plain.isEmpty:
                let place = Int.random(in: 0..<plain.count, using: &random)
                plain[place] = -step
                chunked[place] = -step
                #expect(chunked[place] == -step && chunked.lastIndex { $0 == -step } == plain.lastIndex(of: -step))
            default:
                if step % 50 == 0 { copies.append((plain, chunked)) }
            }
            #expect(chunked.count == plain.count && chunked.first == plain.first && chunked.last == plain.last)
        }
        for (plain, chunked) in copies + [(plain, chunked)] {
            #expect(Array(chunked) == plain && (0..<chunked.count).map { chunked[$0] } == plain)
        }
    }

    @Test func `counts return to zero`() {
        var counts = ShardedCounts()
        for number in [-7, 7, 7, .min, .max] { counts[number] += 1 }
        #expect(counts[7] == 2 && counts[.min] == 1 && counts[8] == 0)
        counts[7] -= 2
        #expect(counts[7] == 0)
    }
}
