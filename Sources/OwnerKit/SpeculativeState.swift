/// A value that is changed before the change is durable, and that can be rolled back.
///
/// Snapshots are cheap: the value’s storage is copied on write.
package struct SpeculativeState<State: Sendable>: Sendable {
    /// The newest value, including changes that aren’t durable yet.
    package private(set) var current: State
    private var pending: [(id: TransactionID, before: State)] = []
    private var lastID: UInt64 = 0

    package init(_ state: State) {
        current = state
    }

    /// Changes the value in a transaction, whose ID is returned.
    package mutating func apply(_ change: (inout State) throws -> Void) rethrows -> TransactionID {
        var next = current
        try change(&next)
        lastID += 1
        pending.append((TransactionID(lastID), current))
        current = next
        return TransactionID(lastID)
    }

    /// Changes the value without a transaction: a refusal of an earlier one rolls this back too.
    package mutating func amend<Result>(_ change: (inout State) throws -> Result) rethrows -> Result {
        try change(&current)
    }

    package mutating func committed(_ id: TransactionID) {
        // The transactions are in order.
        pending.removeFirst(pending.firstIndex { $0.id > id } ?? pending.count)
    }

    /// Rolls the transaction and all later ones back; does nothing if the transaction was already rolled back.
    package mutating func refused(_ id: TransactionID) {
        guard let index = pending.firstIndex(where: { $0.id == id }) else { return }
        current = pending[index].before
        pending.removeSubrange(index...)
    }

    package var isSettled: Bool { pending.isEmpty }
}
