import GRDBSQLite
import LibC
import NIOConcurrencyHelpers

/// Observes SQLite’s operations on the files of one folder through a VFS that is installed once in the process.
package final class WatchedFiles: Sendable {
    /// An operation of SQLite.
    package enum Operation: Sendable, Hashable {
        /// Writes to a file.
        case write
        /// Truncates a file.
        case truncate
        /// Flushes a file to the disk.
        case sync
    }

    /// An operation on a file.
    package struct Event: Sendable {
        package var operation: Operation
        package var path: String
    }

    /// The result with which the operation proceeds.
    package static let proceed = SQLITE_OK
    /// The result that reports a full disk.
    package static let diskFull = SQLITE_FULL
    /// The result that reports a failing disk.
    package static let ioError = SQLITE_IOERR

    private let folder: String
    /// Called before each operation, on the thread that performs it. A result other than 0 is returned to SQLite.
    private let observer: @Sendable (Event) -> Int32

    /// Watches the files under `folder` that are opened from now on, until it is deinitialised.
    package init(_ folder: String, observer: @escaping @Sendable (Event) -> Int32) {
        self.folder = folder
        self.observer = observer
        _ = WatchedFiles.installed
        WatchedFiles.registry.withLockedValue { $0.watchers.append((folder, observer)) }
    }

    deinit {
        let folder = folder
        WatchedFiles.registry.withLockedValue { $0.watchers.removeAll { $0.folder == folder } }
    }

    /// A disk that becomes full after a number of operations, until a test makes space.
    package final class Countdown: Sendable {
        private let left = NIOLockedValueBox(Int.max)

        /// Creates a disk that never becomes full until `start(at:)`.
        package init() {}

        /// Lets `count` operations succeed; later ones fail because the disk is full.
        package func start(at count: Int) { left.withLockedValue { $0 = count } }

        /// Frees space: all later operations succeed.
        package func stop() { left.withLockedValue { $0 = Int.max } }

        /// Returns the result of the next operation.
        package func next() -> Int32 {
            let isFull = left.withLockedValue { left in
                left -= left == Int.max ? 0 : 1
                return left < 0
            }
            return isFull ? WatchedFiles.diskFull : WatchedFiles.proceed
        }
    }

    fileprivate struct Registry: @unchecked Sendable {
        var watchers: [(folder: String, observer: @Sendable (Event) -> Int32)] = []
        /// Open files by the address of SQLite’s handle.
        var paths: [UInt: String] = [:]
        /// SQLite’s own method tables by the address of ours, and vice versa. They exist as long as the process.
        var originals: [UInt: UnsafePointer<sqlite3_io_methods>] = [:]
        var replaced: [UInt: UnsafePointer<sqlite3_io_methods>] = [:]
    }

    fileprivate static let registry = NIOLockedValueBox(Registry())
    // It is set once, before the VFS is registered, and only read afterwards.
    nonisolated(unsafe) fileprivate static var base: UnsafeMutablePointer<sqlite3_vfs>?

    private static let installed: Void = {
        guard let base = sqlite3_vfs_find(nil) else { return }
        WatchedFiles.base = base
        let layer = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        layer.initialize(to: base.pointee)
        layer.pointee.zName = UnsafePointer(strdup("watched"))
        layer.pointee.pNext = nil
        layer.pointee.xOpen = { _, name, file, flags, outFlags in
            guard let base = WatchedFiles.base, let file else { return SQLITE_ERROR }
            let result = base.pointee.xOpen(base, name, file, flags, outFlags)
            if result == SQLITE_OK, let name { WatchedFiles.adopt(file, String(cString: name)) }
            return result
        }
        sqlite3_vfs_register(layer, 1)
    }()

    /// Replaces SQLite’s method table with ours for a watched file.
    private static func adopt(_ file: UnsafeMutablePointer<sqlite3_file>, _ path: String) {
        guard let original = file.pointee.pMethods else { return }
        registry.withLockedValue { registry in
            guard registry.watchers.contains(where: { path.hasPrefix($0.folder) }) else { return }
            registry.paths[UInt(bitPattern: file)] = path
            if let known = registry.replaced[UInt(bitPattern: original)] {
                file.pointee.pMethods = known
                return
            }
            let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
            methods.initialize(to: original.pointee)
            methods.pointee.xWrite = { file, data, count, offset in
                WatchedFiles.pass(.write, file) { $0.pointee.xWrite(file, data, count, offset) }
            }
            methods.pointee.xTruncate = { file, size in
                WatchedFiles.pass(.truncate, file) { $0.pointee.xTruncate(file, size) }
            }
            methods.pointee.xSync = { file, flags in
                WatchedFiles.pass(.sync, file) { $0.pointee.xSync(file, flags) }
            }
            registry.originals[UInt(bitPattern: methods)] = original
            registry.replaced[UInt(bitPattern: original)] = UnsafePointer(methods)
            file.pointee.pMethods = UnsafePointer(methods)
        }
    }

    private static func pass(
        _ operation: Operation, _ file: UnsafeMutablePointer<sqlite3_file>?,
        _ perform: (UnsafePointer<sqlite3_io_methods>) -> Int32
    ) -> Int32 {
        guard let file, let methods = file.pointee.pMethods else { return SQLITE_ERROR }
        let (original, path, observer) = registry.withLockedValue { registry in
            let path = registry.paths[UInt(bitPattern: file)] ?? ""
            return (
                registry.originals[UInt(bitPattern: methods)], path,
                registry.watchers.first { path.hasPrefix($0.folder) }?.observer
            )
        }
        guard let original else { return SQLITE_ERROR }
        if let observer {
            let result = observer(Event(operation: operation, path: path))
            if result != SQLITE_OK { return result }
        }
        return perform(original)
    }
}
