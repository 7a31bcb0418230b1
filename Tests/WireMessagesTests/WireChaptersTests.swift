import SwiftProtobuf
import Testing
import WireMessages

@Test(arguments: [(0.0, 0), (0.95, 1), (1, 1), (1.5, 1), (1.99, 2), (2.4, 2), (2.6, 0), (9, 3)])
func `the number of a chapter is found before, at and between starts, and is 0 after an end`(
    place: Double, number: Int
) {
    let list = [(1.0, 0.0), (2, 2.5), (3, 3)].map { bounds in
        WireChapter.with { ($0.start, $0.end) = bounds }
    }
    #expect(list.number(at: place, tolerance: 0.05) == number)
}
