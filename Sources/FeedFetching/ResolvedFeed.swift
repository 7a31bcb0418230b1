package import PodcastModel

/// A feed’s document for storage and reports. Its addresses are absolute, without users and passwords. Episodes whose
/// audio has no usable address are omitted with a warning.
///
/// Relative addresses are resolved against the address of the final response. Only a local feed may name local files.
package struct ResolvedFeed: Sendable {
    package private(set) var document: FeedDocument
    /// The users and passwords that its addresses contained.
    package private(set) var secrets: [WebOrigin: WebCredentials]

    /// Resolves a document that was fetched from `base` and whose permanent address is `address`.
    package init(_ document: FeedDocument, base: WebAddress, address: WebAddress) {
        var addresses = FeedAddresses(base: base)
        addresses.record(address)
        var resolved = document
        resolved.channel.description = WebAddress.withoutCredentials(in: document.channel.description)
        resolved.items = []
        var refused = 0
        for var item in document.items {
            guard let audio = addresses.resolve(item.enclosureURL) else {
                refused += 1
                continue
            }
            item.enclosureURL = audio
            item.imageURL = addresses.resolve(item.imageURL) ?? ""
            item.chaptersURL = addresses.resolve(item.chaptersURL) ?? ""
            item.transcriptURL = addresses.resolve(item.transcriptURL) ?? ""
            item.link = addresses.resolve(item.link) ?? ""
            item.guid = WebAddress.withoutCredentials(in: item.guid)
            item.description = WebAddress.withoutCredentials(in: item.description)
            resolved.items.append(item)
        }
        if refused > 0 {
            resolved.warnings.append(
                FeedWarning(
                    code: "badAudioURL", message: "An episode was left out: its audio has no usable address",
                    count: refused))
        }
        resolved.channel.imageURL = addresses.resolve(document.channel.imageURL) ?? ""
        resolved.channel.link = addresses.resolve(document.channel.link) ?? ""
        self.document = resolved
        secrets = addresses.secrets
    }
}

/// Makes the addresses in a document absolute, and removes users and passwords from them.
private struct FeedAddresses {
    let base: WebAddress
    var secrets: [WebOrigin: WebCredentials] = [:]

    init(base: WebAddress) {
        self.base = base.withoutCredentials
    }

    mutating func record(_ address: WebAddress) {
        if let origin = address.origin, let found = address.webCredentials { secrets[origin] = found }
    }

    mutating func resolve(_ text: String) -> String? {
        guard let address = WebAddress(text, relativeTo: base), !address.isFile || base.isFile else { return nil }
        record(address)
        return address.withoutCredentials.text
    }
}

extension FeedWarning {
    /// The warning about a password that was sent unencrypted; nil if there was none.
    package static func unencryptedPassword(to address: WebAddress) -> FeedWarning? {
        guard address.scheme == "http" else { return nil }
        return FeedWarning(
            code: "unencryptedPassword",
            message: "The password was sent to \(address.host) unencrypted. Use https:// if the server offers it.")
    }
}
