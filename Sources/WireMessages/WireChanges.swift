public import SwiftProtobuf

extension WireChange {
    /// Writes a record.
    public static func putting(_ collection: String, _ key: String, _ value: some SwiftProtobuf.Message) -> WireChange {
        var change = WireChange()
        change.put.collection = collection
        change.put.key = key
        change.put.value = value.wireData
        return change
    }

    /// Deletes a record; one that is not there is no error.
    public static func deleting(_ collection: String, _ key: String) -> WireChange {
        var change = WireChange()
        change.delete.collection = collection
        change.delete.key = key
        return change
    }

    /// Deletes all records of a collection.
    public static func deletingAll(_ collection: String) -> WireChange {
        var change = WireChange()
        change.deleteCollection = collection
        return change
    }
}
