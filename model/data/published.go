package data

// published lists the published datasets that the program can read, in the order in which they are shown. Each is declared in a file of
// its own.
var published = []Published{
	publishedShapes3D, publishedFalcor3D, publishedMPI3DComplex, publishedIsaac3D, publishedMPI3DToy, publishedMPI3DRealistic, publishedMPI3DReal, publishedDSprites,
	publishedCars3D, publishedSmallNORB,
}

// formats are tried in order for paths that are not published files.
var formats = []Format{arraysFormat, parquetFormat, folderFormat, zipFormat, tarFormat}
