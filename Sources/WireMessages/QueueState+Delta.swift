extension WireQueueState {
    /// Applies a delta’s steps in order, and its revision. An insert of an existing entry moves it; one after a missing
    /// entry appends it, and a removal or an update of a missing entry does nothing.
    /// - Returns: false if a step named a missing entry, so that the state should be fetched again.
    @discardableResult
    package mutating func apply(_ delta: WireQueueDelta) -> Bool {
        var consistent = true
        var steps = delta.steps[...]
        if steps.count > Self.fewSteps { steps = continued(by: steps) }
        for step in steps {
            consistent = apply(step) && consistent
        }
        revision = delta.revision
        more = delta.more
        return consistent
    }

    /// The maximum number of steps that are applied one by one.
    private static let fewSteps = 64

    /// Appends new entries that continue the list, as in a long put, without a search for each.
    /// - Returns: the remaining steps.
    private mutating func continued(by steps: ArraySlice<WireQueueStep>) -> ArraySlice<WireQueueStep> {
        var known = Set(entries.map(\.id))
        var last = entries.last?.id ?? ""
        for (index, step) in zip(steps.indices, steps) {
            guard case .insert(let insert) = step.step, insert.after == last, known.insert(insert.entry.id).inserted
            else { return steps[index...] }
            entries.append(insert.entry)
            last = insert.entry.id
        }
        return []
    }

    private mutating func apply(_ step: WireQueueStep) -> Bool {
        switch step.step {
        case .insert(let insert): return self.insert(insert.entry, after: insert.after)
        case .remove(let id):
            guard let index = index(of: id) else { return false }
            entries.remove(at: index)
            return true
        case .update(let update):
            guard let index = index(of: update.entry.id) else { return false }
            entries[index] = update.entry
            return true
        case .setCurrent(let id):
            current = id
            return true
        case .order(let order): return reorder(order.entries)
        case nil: return true
        }
    }

    private mutating func insert(_ entry: WireQueueEntry, after: String) -> Bool {
        // Most inserts are after the last entry, which is checked first.
        if !after.isEmpty, entries.last?.id == after, entry.id != after {
            if let old = index(of: entry.id) { entries.remove(at: old) }
            entries.append(entry)
            return true
        }
        if let old = index(of: entry.id) { entries.remove(at: old) }
        if after.isEmpty {
            entries.insert(entry, at: 0)
            return true
        }
        guard let index = index(of: after) else {
            entries.append(entry)
            return false
        }
        entries.insert(entry, at: index + 1)
        return true
    }

    private mutating func reorder(_ ids: [String]) -> Bool {
        let named = Set(ids)
        let indices = entries.indices.filter { named.contains(entries[$0].id) }
        var present: [String: WireQueueEntry] = [:]
        for index in indices { present[entries[index].id] = entries[index] }
        let ordered = ids.compactMap { present.removeValue(forKey: $0) }
        for (index, entry) in zip(indices, ordered) { entries[index] = entry }
        return ordered.count == ids.count
    }

    private func index(of id: String) -> Int? { entries.firstIndex { $0.id == id } }
}
