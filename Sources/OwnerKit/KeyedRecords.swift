package import SwiftProtobuf
package import WireMessages

/// The stored records of one collection by key. Every change appends the writes to `changes`.
package struct KeyedRecords<Value: SwiftProtobuf.Message & Sendable>: Sendable {
    package let collection: String
    private let limit: Int
    private let age: @Sendable (Value) -> Int64?
    private let subject: @Sendable (Value) -> WireChange.Subject?
    package private(set) var values: [String: Value] = [:]

    /// - Parameters:
    ///   - limit: the maximum number of records; the oldest is evicted.
    ///   - age: the order of eviction, the oldest first; nil if the record must not be evicted.
    ///   - subject: the episode that a record is about; nil for none.
    package init(
        _ collection: String, limit: Int = .max, age: @escaping @Sendable (Value) -> Int64? = { _ in nil },
        about subject: @escaping @Sendable (Value) -> WireChange.Subject? = { _ in nil }
    ) {
        self.collection = collection
        self.limit = limit
        self.age = age
        self.subject = subject
    }

    package subscript(key: String) -> Value? { values[key] }
    package var count: Int { values.count }
    package var keys: [String] { values.keys.sorted() }
    package var sorted: [(key: String, value: Value)] { values.sorted { $0.key < $1.key } }

    /// Restores a record; false if it belongs to another collection.
    package mutating func restore(_ record: StoredRecord) throws -> Bool {
        guard record.collection == collection else { return false }
        values[record.key] = try Value(wireBytes: record.value)
        return true
    }

    /// Stores a record, replacing one of the same key, and evicts the oldest others beyond the limit.
    /// - Parameter kept: the keys of other records that must not be evicted.
    package mutating func put(
        _ key: String, _ value: Value, keeping kept: Set<String> = [], _ changes: inout [WireChange]
    ) {
        values[key] = value
        changes.append(write(key, value))
        guard values.count > limit else { return }
        let others = values.compactMap { other, value in
            other == key || kept.contains(other) ? nil : age(value).map { (age: $0, key: other) }
        }
        if let oldest = others.min(by: { $0 < $1 })?.key { remove(oldest, &changes) }
    }

    /// Deletes a record.
    /// - Returns: the deleted record; nil if there was none, and nothing is written.
    @discardableResult
    package mutating func remove(_ key: String, _ changes: inout [WireChange]) -> Value? {
        guard let value = values.removeValue(forKey: key) else { return nil }
        changes.append(.deleting(collection, key))
        return value
    }

    /// The write of a record’s current value for the database; a deletion if there is no record.
    package func change(_ key: String) -> WireChange {
        values[key].map { write(key, $0) } ?? .deleting(collection, key)
    }

    /// All records as writes, for a database that has lost some.
    package var everything: [WireChange] { sorted.map { write($0.key, $0.value) } }

    private func write(_ key: String, _ value: Value) -> WireChange {
        .putting(collection, key, value, about: subject(value))
    }
}
