package import PodcastModel

/// Which version of a file a server says that it sends.
package struct FileVersion: Sendable, Hashable {
    /// Its `ETag`; empty: none was sent.
    package var etag: String
    /// Its `Last-Modified`; empty: none was sent.
    package var lastModified: String

    /// What a request names it by that wants more of it and nothing of another (RFC 9110, section 13.1.5: a weak ETag
    /// does not tell). Empty: nothing does, so that no part of it can be continued.
    package var condition: String { etag.isEmpty || etag.hasPrefix("W/") ? lastModified : etag }
}

/// What lies where a file was put.
package enum FoundFile: Sendable, Hashable {
    case nothing
    /// A file of so many bytes.
    case file(UInt64)
    /// Something that is no file, or a link.
    case other
}

/// The folder of downloads, as it was when files were looked at.
package struct FolderSnapshot: Sendable, Hashable {
    /// What its marker says; empty: it has none, or is not there.
    package var marker = ""
    /// Podcasts' folders in it that are on another device than it is.
    package var mounts: Set<String> = []

    /// A folder that bears this marker.
    package init(marker: String = "", mounts: Set<String> = []) {
        self.marker = marker
        self.mounts = mounts
    }
}

/// A file to fetch.
package struct TransferOrder: Sendable, Hashable {
    /// Which transfer its reports name.
    package var number: UInt64
    /// The episode's id.
    package var episode: String
    /// Where it is.
    package var url: String
    /// Where the file goes, relative to the folder of downloads.
    package var path: String
    /// At most so many bytes of the partial file are kept, whose own size says how many have come; 0: none.
    package var received: UInt64
    /// The version that was begun.
    package var version: FileVersion
    /// Its size in bytes as the feed says; 0: it does not.
    package var announced: UInt64
    /// The marker of the folder that it goes to; empty: that has none yet.
    package var folder = ""
    /// The podcast whose user and password the server may ask for.
    package var podcast = ""
}

/// What a server said of a file.
package struct TransferStart: Sendable, Hashable {
    /// Its size in bytes; 0: it does not say.
    package var total: UInt64
    /// Where it is begun: 0, or where it was left.
    package var offset: UInt64
    package var version: FileVersion
    /// What kind of file it says it is.
    package var contentType: String
    /// A part of this version was asked for, and the whole is sent.
    package var isPartRefused = false
    /// Nothing lies where it goes.
    package var isPlaceFree = true
}

/// Why a file did not come.
package struct TransferFailure: Error, Sendable, Hashable {
    package var failure: Failure
    /// How long the server wants to be left alone, in seconds.
    package var retryAfter: Double?

    package init(_ failure: Failure, retryAfter: Double? = nil) {
        self.failure = failure
        self.retryAfter = retryAfter
    }
}

/// What the shell tells the machine.
package enum DownloadsInput: Sendable, Hashable {
    /// The server has begun to answer.
    case began(UInt64, TransferStart)
    /// So many bytes have come.
    case progressed(UInt64, received: UInt64, bytesPerSecond: Double)
    /// So many bytes are on disk for certain.
    case saved(UInt64, received: UInt64)
    /// It was ended by order; so many bytes of this version are on disk for certain.
    case stopped(episode: String, FileVersion, received: UInt64)
    /// The file is whole, checked, on disk and at its place.
    case completed(UInt64, bytes: UInt64)
    /// It did not come.
    case failed(UInt64, TransferFailure)
    /// What was to be cancelled has ended, and reports nothing more.
    case ended(UInt64)
    /// What there is in the folder: sizes in bytes by path, relative to it.
    case surveyed([String: UInt64], FolderSnapshot = FolderSnapshot())
    /// What lies where the files of these episodes were put; those that could not be looked at are left out. Nil: the
    /// folder could not be looked at.
    case filesChecked(UInt64, [String: FoundFile], FolderSnapshot?)
    /// The folder bears this marker now, on disk.
    case marked(String)
    /// It cannot be marked.
    case markFailed(Failure)
    /// The folder could not be read.
    case surveyFailed(Failure)
    /// The file of an episode has been deleted, or could not be.
    case deleted(episode: String, Failure?)
    /// The interfaces of the default routes; empty: there is no way out. And the hour of the day, local time.
    case networkChecked(interfaces: [String], hour: Int)
}

/// What only the shell can do.
package enum DownloadsAction: Sendable, Hashable {
    /// Fetch a file.
    case start(TransferOrder)
    /// Stop fetching, and report `ended`; what has come stays.
    case cancel(UInt64)
    /// Let an episode's transfer run once more after the process crashed over it.
    case release(episode: String)
    /// Delete what has come of an episode's file.
    case discard(episode: String)
    /// Delete an episode's file, if it is a file and lies where this path, relative to the folder, says, and the folder
    /// bears this marker (empty: whatever it bears).
    case delete(episode: String, path: String, folder: String = "")
    /// Give the folder a marker, unless it has one.
    case mark(String)
    /// Look what there is in the folder.
    case survey
    /// Look what lies at these paths, relative to the folder, by episode; the number comes back with what was found.
    case checkFiles(UInt64, [String: String])
    /// See which way out there is, and what time it is.
    case checkNetwork
    /// So many bytes a second for all transfers together; 0: as many as come.
    case limit(bytesPerSecond: UInt64)
}
