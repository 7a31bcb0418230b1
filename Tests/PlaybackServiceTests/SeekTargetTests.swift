import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import PlaybackService

@Suite struct SeekTargetTests {
    @Test func `chapter seeks visit two hundred chapters one by one in both directions`() throws {
        let chapters = (0..<200).map { index in WireChapter.with { $0.start = Double(index) * 30 } }
        func start(_ neighbour: WireChapterTarget.Neighbour, from position: Double) throws -> Double {
            let target = SeekTarget(title: "", position: position, duration: 6_000, chapters: chapters)
            return try target.start(of: .with { $0.neighbour = neighbour }).seconds
        }
        var position = 0.0
        for number in 1..<200 {
            position = try start(.next, from: position)
            #expect(position == chapters[number].start)
        }
        for number in (0..<199).reversed() {
            position = try start(.previous, from: position)
            #expect(position == chapters[number].start)
        }
    }
}
