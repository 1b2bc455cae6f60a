package data

// published are the datasets of others that the program can read, in the order in which they are listed: one file per dataset
// declares its entry.
var published = []Published{
	publishedShapes3D, publishedFalcor3D, publishedMPI3DComplex, publishedIsaac3D, publishedMPI3DToy, publishedMPI3DRealistic, publishedMPI3DReal, publishedDSprites,
	publishedCars3D, publishedSmallNORB,
}

// formats are tried in order on a path that is no published file.
var formats = []Format{arraysFormat, parquetFormat, folderFormat, zipFormat, tarFormat}
