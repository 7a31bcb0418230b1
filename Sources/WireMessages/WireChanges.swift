package import SwiftProtobuf

extension WireChange {
    package static func putting(_ collection: String, _ key: String, _ value: some SwiftProtobuf.Message) -> WireChange
    {
        var change = WireChange()
        change.put.collection = collection
        change.put.key = key
        change.put.value = value.wireData
        return change
    }

    /// Creates a write of a document that was fetched at a time, in ms since 1970.
    package static func puttingDocument(
        _ collection: String, _ key: String, _ value: some SwiftProtobuf.Message, at moment: Int64
    ) -> WireChange {
        var change = WireChange()
        change.putDocument.collection = collection
        change.putDocument.key = key
        change.putDocument.at = moment
        change.putDocument.value = value.wireData
        return change
    }

    package static func deletingDocuments(_ collection: String) -> WireChange {
        var change = WireChange()
        change.deleteDocuments = collection
        return change
    }

    /// Creates a deletion of a record; a missing record is no error.
    package static func deleting(_ collection: String, _ key: String) -> WireChange {
        var change = WireChange()
        change.delete.collection = collection
        change.delete.key = key
        return change
    }

    package static func deletingAll(_ collection: String) -> WireChange {
        var change = WireChange()
        change.deleteCollection = collection
        return change
    }
}
