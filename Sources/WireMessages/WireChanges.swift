package import SwiftProtobuf

extension WireChange {
    /// The episode that a record is about, and a number whose meaning the collection defines: persistence selects
    /// episodes by them.
    package typealias Subject = (episode: String, state: UInt32)

    /// Creates a write of a record.
    package static func putting(
        _ collection: String, _ key: String, _ value: some SwiftProtobuf.Message, about subject: Subject? = nil
    ) -> WireChange {
        var change = WireChange()
        change.put.collection = collection
        change.put.key = key
        change.put.value = value.wireData
        if let subject { (change.put.episode, change.put.state) = subject }
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

extension WireDownload {
    /// The subject of its record.
    package var subject: WireChange.Subject { (episode, UInt32(clamping: state.rawValue)) }
}
