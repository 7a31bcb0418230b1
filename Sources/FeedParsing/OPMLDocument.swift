package import PodcastModel

/// A list of podcasts, as podcast players exchange it (OPML 2.0).
package struct OPMLDocument: Sendable, Hashable {
    /// A podcast of the list.
    package struct Outline: Sendable, Hashable {
        /// The address of the feed, as the list has it.
        package var url: String
        /// The feed’s title; empty if the list has none.
        package var title: String
        /// The title that the user gave the podcast; empty if there is none.
        package var ownTitle: String
        /// The folders around it, from the outermost one.
        package var tags: [String]
        /// The line of the document; 0 for a new outline.
        package var line: Int

        package init(_ url: String, title: String = "", ownTitle: String = "", tags: [String] = [], line: Int = 0) {
            (self.url, self.title, self.ownTitle, self.tags, self.line) = (url, title, ownTitle, tags, line)
        }
    }

    /// An entry that can’t be imported.
    package struct Problem: Sendable, Hashable {
        /// The line of the document.
        package var line: Int
        /// The entry’s title or address; empty if it has none.
        package var name: String
        /// A sentence about the reason.
        package var reason: String

        package init(line: Int, name: String, reason: String) {
            (self.line, self.name, self.reason) = (line, name, reason)
        }
    }

    /// The podcasts, in order; one that is in several folders occurs several times.
    package var outlines: [Outline] = []
    /// The broken entries, in order.
    package var problems: [Problem] = []

    package init(outlines: [Outline] = []) { self.outlines = outlines }

    /// The limits of a list.
    package struct Limits: Sendable {
        /// The maximum size, in bytes.
        package var bytes = 64 << 20
        /// The maximum number of entries, with folders.
        package var outlines = 20_000
        /// The maximum number of folders in each other.
        package var depth = 50

        package init() {}
    }

    /// The namespace of the attribute `feedTitle`: it has the feed’s title if `text` and `title` are the user’s own.
    static let namespace: StaticString = "urn:lockstep:opml"
}

extension OPMLDocument {
    /// Reads a list. No file and no network is accessed, and no entity is expanded.
    ///
    /// - Parameter name: the name of the list in messages, such as the path of its file.
    /// - Throws: `malformed` for anything but OPML, `tooLarge` beyond a limit.
    package static func parse(
        _ bytes: [UInt8], named name: String, limits: Limits = Limits()
    ) throws(Failure) -> OPMLDocument {
        guard bytes.count <= limits.bytes else { throw tooLong(name, limits) }
        let parser = XMLPushParser(OPMLReader(name: name, limits: limits))
        let input = try parser.parse(document: bytes) { input throws(Failure) in
            if input.hasSeenText, !input.beginsWithMarkup { throw malformed(name, "it isn’t XML") }
        }
        guard input.hasSeenText else { throw Failure(.malformed, "\(name) is empty. Export your podcasts again.") }
        guard input.beginsWithMarkup else { throw malformed(name, "it isn’t XML") }
        return try parser.reader.pointee.finish()
    }

    /// The failure of a document that isn’t a list.
    static func malformed(_ name: String, _ reason: String) -> Failure {
        Failure(.malformed, "\(name) isn’t an OPML list of podcasts: \(reason).")
    }

    /// The failure of a list beyond the limit of its size.
    package static func tooLong(_ name: String, _ limits: Limits = Limits()) -> Failure {
        Failure(.tooLarge, "\(name) is longer than \(limits.bytes >> 20) MiB, and wasn’t read.")
    }

    // MARK: - Writing

    /// The list as OPML 2.0. A podcast is in a folder for each of its tags.
    package var text: String {
        var folders: [(tag: String, outlines: [Outline])] = []
        var indices: [String: Int] = [:]
        for outline in outlines {
            for tag in outline.tags {
                let key = PodcastTag.key(tag)
                let index = indices[key] ?? folders.count
                if index == folders.count {
                    indices[key] = index
                    folders.append((tag, []))
                }
                folders[index].outlines.append(outline)
            }
        }
        var lines = [
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
            "<opml version=\"2.0\" xmlns:lockstep=\"\(Self.namespace)\">",
            "  <head><title>Podcasts</title></head>",
            "  <body>",
        ]
        lines += outlines.filter(\.tags.isEmpty).map { "    \($0.element)" }
        for folder in folders {
            lines.append("    <outline text=\"\(FileText.escaped(folder.tag))\">")
            lines += folder.outlines.map { "      \($0.element)" }
            lines.append("    </outline>")
        }
        lines += ["  </body>", "</opml>"]
        return lines.joined(separator: "\n") + "\n"
    }
}

extension OPMLDocument.Outline {
    fileprivate var element: String {
        let shown = FileText.escaped(ownTitle.isEmpty ? title : ownTitle)
        let own = ownTitle.isEmpty ? "" : " lockstep:feedTitle=\"\(FileText.escaped(title))\""
        return
            "<outline type=\"rss\" text=\"\(shown)\" title=\"\(shown)\"\(own) xmlUrl=\"\(FileText.escaped(url))\"/>"
    }
}
