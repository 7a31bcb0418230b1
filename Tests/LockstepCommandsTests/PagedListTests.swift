import PodcastModel
import Testing

@testable import LockstepCommands

@Suite struct PagedListTests {
    private struct Row: Identifiable, Hashable, Sendable {
        var id: Int
    }

    private typealias List = PagedList<Row>

    private static let start = MonotonicTime(nanoseconds: 1_000_000_000)

    private static func next(_ list: inout List, at now: MonotonicTime = start) throws -> PageRequest {
        let request = list.nextRequest(now: now)
        return try #require(request)
    }

    /// Answers a request from the numbers of a library; a cursor is the number of the last row before the page.
    private static func answer(_ list: inout List, _ request: PageRequest, from numbers: [Int]) {
        var pages: [List.Page] = []
        var cursor = request.cursor
        repeat {
            let first = Int(cursor).map { last in numbers.firstIndex { $0 > last } ?? numbers.count } ?? 0
            let rows = numbers[first...].prefix(PageRequest.pageSize)
            let isLast = first + rows.count >= numbers.count
            let next = isLast ? "" : rows.last.map { "\($0)" } ?? ""
            pages.append(.init(cursor: cursor, rows: rows.map(Row.init), next: next))
            cursor = next
        } while !cursor.isEmpty && pages.count < request.pages
        list.apply(pages, total: numbers.count, to: request)
    }

    private static func settle(_ list: inout List, _ numbers: [Int], at now: MonotonicTime = start) {
        while let request = list.nextRequest(now: now) { answer(&list, request, from: numbers) }
    }

    @Test func `a list of any length keeps three pages while the selection moves to its end and back`() {
        let numbers = Array(0..<2_000)
        var list = List()
        Self.settle(&list, numbers)
        #expect(list.selected?.id == 0)
        for number in 1..<2_000 {
            list.move(by: 1)
            Self.settle(&list, numbers)
            #expect(list.selected?.id == number)
            #expect(list.rows.count <= PageRequest.pageSize * List.pageLimit)
        }
        #expect(list.firstIndex + list.rows.count == 2_000)
        for number in (0..<1_999).reversed() {
            list.move(by: -1)
            Self.settle(&list, numbers)
            #expect(list.selected?.id == number)
        }
        #expect(list.firstIndex == 0 && list.total == 2_000)
    }

    @Test func `the selection stays on its row when rows are inserted and removed`() {
        var list = List()
        Self.settle(&list, [10, 20, 30, 40])
        list.select(index: 1)
        let later = Self.start.advanced(by: .seconds(1))
        for (numbers, selected) in [
            ([5, 10, 20, 30], 20), ([20, 30], 20), ([5, 6, 7, 30, 40], 30), ([5, 6], 6), ([], nil), ([1, 2], 1),
        ] as [([Int], Int?)] {
            list.invalidate(now: Self.start)
            Self.settle(&list, numbers, at: later)
            #expect(list.selected?.id == selected)
        }
    }

    @Test func `changes are collected for a moment, and one request is in flight at a time`() throws {
        var list = List()
        let first = try Self.next(&list, at: Self.start)
        #expect(list.nextRequest(now: Self.start) == nil)
        Self.answer(&list, first, from: [1])
        list.invalidate(now: Self.start)
        #expect(list.nextRequest(now: Self.start) == nil)
        let later = Self.start.advanced(by: List.refreshDelay)
        let second = try Self.next(&list, at: later)
        // A change during the request needs another one.
        list.invalidate(now: later)
        #expect(list.nextRequest(now: later.advanced(by: .seconds(1))) == nil)
        Self.answer(&list, second, from: [1, 2])
        #expect(list.nextRequest(now: later.advanced(by: List.refreshDelay)) != nil)
    }

    @Test func `an outdated reply is ignored after the contents were replaced`() throws {
        var list = List()
        let old = try Self.next(&list, at: Self.start)
        list.clear()
        let new = try Self.next(&list, at: Self.start)
        Self.answer(&list, old, from: [1])
        #expect(list.rows.isEmpty)
        Self.answer(&list, new, from: [2])
        #expect(list.rows.map(\.id) == [2])
    }

    @Test func `a failure is kept until the selection moves, and rows stay`() throws {
        var list = List()
        Self.settle(&list, Array(0..<300))
        list.select(index: 99)
        let request = try Self.next(&list, at: Self.start)
        list.fail("The database is busy.", request, now: Self.start)
        #expect(list.failure == "The database is busy." && list.rows.count >= 100)
        #expect(list.nextRequest(now: Self.start) == nil)
        list.move(by: -1)
        #expect(list.nextRequest(now: Self.start)?.kind == .next)
    }

    @Test func `pages may have any number of rows`() throws {
        var list = List()
        var cursor = 0
        // Pages of 40 rows, as if they were limited by bytes.
        for _ in 0..<6 {
            let request = try Self.next(&list, at: Self.start)
            let rows = (cursor..<(cursor + 40)).map(Row.init)
            cursor += 40
            list.apply([.init(cursor: request.cursor, rows: rows, next: "\(cursor)")], total: 1_000, to: request)
            list.select(index: list.rows.count - 1)
        }
        #expect(list.firstIndex == 120 && list.rows.first?.id == 120 && list.rows.count == 120)
        #expect(list.firstIndex + (list.selectedIndex ?? 0) == 239)
    }

    @Test func `a window whose rows were all removed returns to the beginning`() {
        var list = List()
        Self.settle(&list, Array(0..<1_000))
        for _ in 0..<900 {
            list.move(by: 1)
            Self.settle(&list, Array(0..<1_000))
        }
        #expect(list.firstIndex > 0)
        list.invalidate(now: Self.start)
        Self.settle(&list, [1, 2, 3], at: Self.start.advanced(by: .seconds(1)))
        #expect(list.firstIndex == 0 && list.rows.map(\.id) == [1, 2, 3])
    }
}
