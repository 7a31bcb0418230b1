import PodcastModel

/// A request for rows of a list.
struct PageRequest: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        /// All loaded pages are read again.
        case refresh
        /// The page before the first loaded one is read, or the page after the last one.
        case previous, next
    }

    var number: Int
    var kind: Kind
    /// The cursor of the first page; empty for the beginning of the list.
    var cursor: String
    /// The number of pages to read.
    var pages: Int

    /// The number of rows of a page.
    static let pageSize = 100
}

/// A list of any length of which at most `pageLimit` pages around the selection are loaded.
///
/// The selection is a row’s ID: it stays on its row when rows are inserted or removed before it.
struct PagedList<Row: Identifiable & Hashable & Sendable>: Sendable where Row.ID: Sendable {
    struct Page: Sendable, Hashable {
        /// The cursor with which the page was read.
        var cursor: String
        var rows: [Row]
        /// The cursor of the following page; empty after the last one.
        var next: String
    }

    /// The loaded rows, in order.
    private(set) var rows: [Row] = []
    private(set) var selection: Row.ID?
    /// The number of all rows; nil if unknown.
    private(set) var total: Int?
    /// The reason why the last request failed; nil if it succeeded.
    private(set) var failure: String?
    /// Whether rows were loaded since the list was created or cleared.
    private(set) var isLoaded = false
    private var pages: [Page] = []
    /// The pages before the loaded ones: their cursors, and the numbers of rows that they had.
    private var earlier: [(cursor: String, count: Int)] = []
    private var pending: PageRequest?
    private var requests = 0
    /// The time of the next refresh; nil if the rows are current.
    private(set) var refreshTime: MonotonicTime? = MonotonicTime(nanoseconds: 0)

    /// The maximum number of loaded pages.
    static var pageLimit: Int { 3 }
    /// The distance of the selection from the loaded rows’ ends at which more rows are requested.
    static var margin: Int { 30 }
    /// The time for which changes are collected before the rows are read again.
    static var refreshDelay: Duration { .milliseconds(100) }

    /// The time after which rows that couldn’t be read are requested again.
    static var retryDelay: Duration { .seconds(3) }

    var isLoading: Bool { pending != nil }

    /// The number of rows before the loaded ones.
    var firstIndex: Int { earlier.reduce(0) { $0 + $1.count } }

    var isComplete: Bool { isLoaded && earlier.isEmpty && pages.last?.next.isEmpty ?? true }

    var selectedIndex: Int? { selection.flatMap { id in rows.firstIndex { $0.id == id } } }

    var selected: Row? { selectedIndex.map { rows[$0] } }

    /// Marks the rows as out of date; they are read again after `refreshDelay`.
    mutating func invalidate(now: MonotonicTime) {
        if refreshTime == nil { refreshTime = now.advanced(by: Self.refreshDelay) }
    }

    /// Removes all rows and reads the list again at once, because its contents are others.
    mutating func clear() {
        let count = requests
        self = Self()
        requests = count
    }

    /// Returns the next request to send; nil if none is due, or one is in flight.
    mutating func nextRequest(now: MonotonicTime) -> PageRequest? {
        guard pending == nil, let (kind, cursor) = due(now) else { return nil }
        requests += 1
        let count = kind == .refresh ? max(1, pages.count) : 1
        pending = PageRequest(number: requests, kind: kind, cursor: cursor, pages: count)
        if kind == .refresh { refreshTime = nil }
        return pending
    }

    private func due(_ now: MonotonicTime) -> (PageRequest.Kind, String)? {
        if let refreshTime {
            return refreshTime <= now ? (.refresh, pages.first?.cursor ?? "") : nil
        }
        guard failure == nil, let index = selectedIndex else { return nil }
        if index < Self.margin, let before = earlier.last { return (.previous, before.cursor) }
        guard let next = pages.last?.next, !next.isEmpty, index >= rows.count - Self.margin else { return nil }
        return (.next, next)
    }

    /// Applies the reply to a request. Replies to other requests than the one in flight are ignored.
    mutating func apply(_ received: [Page], total: Int?, to request: PageRequest) {
        guard request == pending else { return }
        pending = nil
        failure = nil
        isLoaded = true
        if let total { self.total = total }
        switch request.kind {
        case .refresh:
            pages = received
            if received.allSatisfy(\.rows.isEmpty), !earlier.isEmpty {
                // The rows from here on were removed.
                (pages, earlier, refreshTime) = ([], [], MonotonicTime(nanoseconds: 0))
                return
            }
        case .next:
            pages += received
            while pages.count > Self.pageLimit {
                let page = pages.removeFirst()
                earlier.append((page.cursor, page.rows.count))
            }
        case .previous:
            earlier.removeLast()
            pages = received + pages
            if pages.count > Self.pageLimit { pages.removeLast(pages.count - Self.pageLimit) }
        }
        let before = rows
        var seen: Set<Row.ID> = []
        // A row that has moved may be in two pages.
        rows = pages.flatMap(\.rows).filter { seen.insert($0.id).inserted }
        keepSelection(before)
    }

    mutating func fail(_ message: String, _ request: PageRequest, now: MonotonicTime) {
        guard request == pending else { return }
        pending = nil
        failure = message
        if request.kind == .refresh { refreshTime = now.advanced(by: Self.retryDelay) }
    }

    /// Selects the row after a removed selection, or else the one before.
    private mutating func keepSelection(_ before: [Row]) {
        let ids = Set(rows.map(\.id))
        if let selection, ids.contains(selection) { return }
        guard let selection, let index = before.firstIndex(where: { $0.id == selection }) else {
            self.selection = rows.first?.id
            return
        }
        let left = before[index...].first { ids.contains($0.id) } ?? before[..<index].last { ids.contains($0.id) }
        self.selection = left?.id ?? rows.first?.id
    }

    /// Moves the selection by a number of loaded rows.
    mutating func move(by count: Int) { select(index: (selectedIndex ?? 0) + count) }

    /// Selects the loaded row with this index, or the nearest one.
    mutating func select(index: Int) {
        guard !rows.isEmpty else { return }
        selection = rows[max(0, min(rows.count - 1, index))].id
        // A failed request is repeated when the selection comes near the end again.
        failure = nil
    }

    /// Returns to the beginning of the list.
    mutating func selectFirst() {
        if !earlier.isEmpty {
            clear()
        } else {
            select(index: 0)
        }
    }
}
